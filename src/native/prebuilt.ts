import { createHash } from "node:crypto";
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** A package with addons for one platform, in `prebuilt.json` of the packed main package. */
export interface PrebuiltPackage {
  name: string;
  version: string;
  platform: string;
  arch: string;
  backend: string;
  /** SHA-256 of its `addons.json`, to reject a different package with the same name. */
  manifest: string;
}

/** One file of such a package in its `addons.json`, the best first. */
export interface PrebuiltAddon {
  /** Processor levels that it has kernels for, e.g. `x86-64-v3`, the best first. */
  levels: string[];
  file: string;
  /** Processor features that the lowest level requires, by Linux's names. */
  needs: string[];
  bytes: number;
  sha256: string;
}

/** An addon that this processor can run. */
export interface Candidate {
  path: string;
  levels: string[];
  package: string;
  backend: string;
}

export interface Prebuilt {
  /** The best first; empty for a package without prebuilt addons, such as a clone. */
  candidates: Candidate[];
  /** Why packages or files were not used, one sentence each. */
  refused: string[];
  /** Suitable packages that are not installed, one sentence each. */
  missing: string[];
}

/** Inputs of the choice; tests replace them. */
export interface Machine {
  platform: string;
  arch: string;
  features: () => ReadonlySet<string>;
}

const thisMachine: Machine = { platform: process.platform, arch: process.arch, features: processorFeatures };

/**
 * The installed prebuilt addons that run on this processor.
 * @param root the package's folder, which may have `prebuilt.json`
 * @param thorough compares every byte, as an install does; otherwise only sizes, at each start
 */
export function findPrebuilt(root: string, thorough = false, machine = thisMachine): Prebuilt {
  const found: Prebuilt = { candidates: [], refused: [], missing: [] };
  const list = join(root, "prebuilt.json");
  if (!existsSync(list)) return found;
  const { packages } = JSON.parse(readFileSync(list, "utf8")) as { packages: PrebuiltPackage[] };
  const fitting = packages.filter(
    ({ platform, arch }) => platform === machine.platform && arch === machine.arch,
  );
  if (fitting.length === 0) {
    const platforms = [...new Set(packages.map(({ platform, arch }) => `${platform}-${arch}`))].join(", ");
    found.refused.push(
      `this package has prebuilt addons for ${platforms}, and this is ${machine.platform}-${machine.arch}`,
    );
  }
  const features = machine.features();
  for (const each of fitting) addFrom(each, { root, thorough, features, found });
  if (found.candidates.length === 0) found.refused.push(...found.missing);
  // GPU builds come first: without their libraries or the driver they do not load.
  found.candidates.sort((a, b) => Number(a.backend === "cpu") - Number(b.backend === "cpu"));
  return found;
}

function addFrom(
  wanted: PrebuiltPackage,
  context: { root: string; thorough: boolean; features: ReadonlySet<string>; found: Prebuilt },
): void {
  const { found, features, thorough } = context;
  const folder = folderOf(wanted.name, context.root);
  if (folder === undefined) {
    found.missing.push(`${wanted.name} ${wanted.version} is not installed`);
    return;
  }
  const addons = readManifest(wanted, folder, found.refused);
  const damaged = addons.filter((addon) => !isWhole(join(folder, addon.file), addon, thorough));
  if (damaged.length > 0) {
    const files = damaged.map(({ file }) => file).join(", ");
    found.refused.push(`${wanted.name} ${wanted.version} is damaged: ${files}`);
    if (thorough) return; // an install then compiles
  }
  const whole = addons.filter((addon) => !damaged.includes(addon));
  const runnable = whole.filter(({ needs }) => needs.every((feature) => features.has(feature)));
  if (whole.length > 0 && runnable.length === 0) {
    found.refused.push(`this processor can run none of the addons of ${wanted.name}`);
  }
  for (const { file, levels } of runnable) {
    const name = `${wanted.name} ${wanted.version}`;
    found.candidates.push({ path: join(folder, file), levels, package: name, backend: wanted.backend });
  }
}

function folderOf(name: string, root: string): string | undefined {
  try {
    return dirname(createRequire(join(root, "package.json")).resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

/** The addons of the expected package; for a different one none, with a sentence. */
function readManifest(wanted: PrebuiltPackage, folder: string, refused: string[]): PrebuiltAddon[] {
  try {
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
    if (version !== wanted.version) {
      refused.push(`${wanted.name} is here as ${version}, and this package takes ${wanted.version}`);
      return [];
    }
    const text = readFileSync(join(folder, "addons.json"));
    if (createHash("sha256").update(text).digest("hex") === wanted.manifest) {
      return (JSON.parse(text.toString()) as { addons: PrebuiltAddon[] }).addons;
    }
    refused.push(`${wanted.name} ${version} is not the package that was made together with this one`);
  } catch {
    refused.push(`${wanted.name} is damaged: its package.json or addons.json cannot be read`);
  }
  return [];
}

function isWhole(path: string, { bytes, sha256 }: PrebuiltAddon, thorough: boolean): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.size !== bytes) return false;
  return !thorough || createHash("sha256").update(readFileSync(path)).digest("hex") === sha256;
}

/**
 * Processor features that Linux reports as usable, such as `avx2` and `avx512f`. On other systems they are unknown, and
 * only an addon without requirements is used.
 */
export function processorFeatures(file = "/proc/cpuinfo"): ReadonlySet<string> {
  const head = Buffer.alloc(16_384); // the first processor is enough, and machines have hundreds
  try {
    const descriptor = openSync(file, "r");
    try {
      const length = readSync(descriptor, head);
      const line = /^(?:flags|Features)\s*:(.*)$/m.exec(head.toString("latin1", 0, length))?.[1] ?? "";
      return new Set(line.trim().split(/\s+/));
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return new Set();
  }
}
