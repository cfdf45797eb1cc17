#!/usr/bin/env node
/**
 * `npm run release`: packs tapline, for each platform a package with the addon, and in a clone its sources, as tarballs in a
 * folder. For Linux the addon is portable (scripts/build/portable.js) with ggml's kernels for every level of processors, and
 * there is a Python wheel.
 *   --out FOLDER        where they go (default: release)
 *   --platform NAME     what to compile for, by Node's name (default and only choice: the platform that it runs on)
 *   --arch NAME         processors, by Node's name; on Linux x64 and arm64 compile for each other; repeatable
 *   --cuda              a further package, with CUDA, which takes long; on x86-64 Linux nothing has to be installed for it
 *   --cuda-architectures LIST   what it is compiled for, in CMake's words
 *   --levels A,B        only these, for a check
 *   --with TARBALL      a platform package made elsewhere from the same sources, to be named in the main one; repeatable
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { waiting } from "./addon.js";
import { findNvcc } from "./backend.js";
import { buildVersions, withoutBuildPackages } from "./build-packages.js";
import { buildAddon, buildTargets, configure } from "./cmake.js";
import { cudaComponents, licenceText, nativeComponents, sqliteComponents } from "./components.js";
import { checkArchitectures, cudaArchitectures, cudaToolkit } from "./cuda.js";
import { BuildError, sentenceOf } from "./errors.js";
import { onInterrupt } from "./interrupt.js";
import { cmakeOptions, levelList, levelsFor, usualLevel } from "./levels.js";
import { llamaCpp } from "./llama.js";
import { withLock } from "./lock.js";
import { root, treeOf } from "./paths.js";
import { makePlan, prepareBuild } from "./plan.js";
import { portableToolchain } from "./portable.js";
import { createProgress, duration } from "./progress.js";
import { readmeForPackages, repositoryAddress } from "./readme.js";
import { checkAddon, mostBytes, refuseFolders, say, sayPacked, shrink, usesGlibc } from "./release-check.js";
import { nativeEntries, npmEntries, sbom, sbomName } from "./sbom.js";
import { ensureSource } from "./source.js";
import { packSource } from "./source-tarball.js";
import { hashInputs } from "./stamp.js";
import { makeWheel, runtimePackages } from "./wheel.js";

/** @typedef {import("./release-check.js").Target} Target */

/** The default backend, without a toolkit for GPUs. @param {Target} target */
const ordinary = ({ platform, arch }) => (platform === "darwin" && arch === "arm64" ? "metal" : "cpu");
const main = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** What has to be the same for a package of one machine to go with the main package of another. */
function sourcesHash() {
  return hashInputs(root, {
    llamaCpp: llamaCpp.integrity,
    addonApi: buildVersions(main)["node-addon-api"],
    napi: main.binary.napi_versions,
  });
}

async function release() {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: join(root, "release") },
      platform: { type: "string", default: process.platform },
      arch: { type: "string", multiple: true, default: [process.arch] },
      cuda: { type: "boolean", default: false },
      "cuda-architectures": { type: "string", default: cudaArchitectures },
      levels: { type: "string" },
      with: { type: "string", multiple: true, default: [] },
    },
  });
  const out = resolve(values.out);
  const targets = values.arch.map((arch) => targetOf(values.platform, arch));
  const chosen = targets.map((target) => chosenLevels(values.levels, target));
  const architectures = checkArchitectures(values["cuda-architectures"]);
  const work = mkdtempSync(join(os.tmpdir(), "tapline-release-"));
  const clean = () => rmSync(work, { recursive: true, force: true });
  const stop = onInterrupt(clean);
  const started = Date.now();
  try {
    mkdirSync(out, { recursive: true });
    // Of a clone that has none yet: the check of an addon is part of it.
    execFileSync(process.execPath, [join(root, "scripts/build/javascript.js"), "--changed"], {
      stdio: "inherit",
    });
    const packages = [];
    /** @type {(Omit<Parameters<typeof makeWheel>[0], "main" | "work" | "out">)[]} */
    const wheels = [];
    for (const [i, target] of targets.entries()) {
      const made = await platformPackage(ordinary(target), target, chosen[i] ?? [], work, out);
      packages.push(made);
      const { arch, portable } = target;
      if (!portable) continue;
      const [addons, sqlite] = [join(work, made.name), await compileSqlite(target, chosen[i] ?? [], work)];
      const components = [...(await componentsOf(portable, arch)), ...sqliteComponents()];
      wheels.push({ platformPackage: made, addons, sqlite, components, arch });
    }
    if (values.cuda) {
      const here = { ...targetOf(process.platform, process.arch), portable: false }; // nvcc comes with its compiler
      const levels = levelsFor(here.platform, here.arch);
      const level = levels.find(({ name }) => name === usualLevel) ?? levels.at(-1);
      packages.push(await platformPackage("cuda", here, level ? [level] : [], work, out, architectures));
    }
    for (const tarball of values.with) packages.push(foreignPackage(resolve(tarball), work));
    const folder = mainPackage(packages, work, out);
    const source = packSource(main.version, out, say);
    if (source !== undefined) sayPacked(join(out, source));
    for (const each of wheels) {
      sayPacked(makeWheel({ ...each, main: folder, work, out }));
    }
    say(`done in ${duration(Date.now() - started)}: \`npm install\` takes the tarballs of ${out} together`);
  } finally {
    clean(); // a signal while it deletes is still ours
    stop();
  }
}

/**
 * @param {string} platform
 * @param {string} arch
 * @returns {Target}
 */
function targetOf(platform, arch) {
  const here = platform === process.platform && arch === process.arch;
  const portable = platform === "linux" && process.platform === "linux" && usesGlibc();
  if (!here && !(portable && ["x64", "arm64"].includes(arch))) {
    const possible = process.platform === "linux" ? "linux-x64 and linux-arm64" : "this platform only";
    throw new BuildError(`This machine compiles for ${possible}, not for ${platform}-${arch}.`);
  }
  return { platform, arch, portable };
}

/**
 * @param {string | undefined} names
 * @param {Target} target
 */
function chosenLevels(names, { platform, arch }) {
  const levels = levelsFor(platform, arch);
  const wanted = names?.split(",") ?? levels.map(({ name }) => name);
  const unknown = wanted.find((name) => !levels.some((level) => level.name === name));
  if (unknown !== undefined) {
    throw new BuildError(`--levels takes ${levels.map(({ name }) => name).join(", ")}, not "${unknown}".`);
  }
  return levels.filter(({ name }) => wanted.includes(name));
}

/**
 * @param {string} backend
 * @param {Target} target
 * @param {import("./levels.js").Level[]} levels
 * @param {string} work
 * @param {string} out
 * @param {string} [architectures] of CUDA
 */
async function platformPackage(backend, target, levels, work, out, architectures) {
  const where = `${target.platform}-${target.arch}`;
  const name = `${main.name}-${where}${backend === ordinary(target) ? "" : `-${backend}`}`;
  const folder = join(work, name);
  mkdirSync(folder);
  const path = join(folder, "tapline.node");
  copyFileSync(await compile(backend, target, levels, architectures), path);
  shrink(path, target);
  const { needs = [] } = levels.at(-1) ?? {};
  await checkAddon(path, target, backend, needs);
  const bytes = statSync(path).size;
  const names = levels.map((level) => level.name);
  const addons = [{ levels: names, file: "tapline.node", needs, bytes, sha256: sha256(readFileSync(path)) }];
  const manifest = { llamaCpp: llamaCpp.version, backend, sources: sourcesHash(), addons };
  writeFileSync(join(folder, "addons.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const about = {
    name,
    version: main.version,
    description: `The native addon of tapline ${main.version} for ${where}, compiled for ${backend}.`,
    license: main.license,
    ...(main.repository && { repository: main.repository }),
    os: [target.platform],
    cpu: [target.arch],
    ...(target.platform === "linux" && { libc: [usesGlibc() ? "glibc" : "musl"] }),
    files: ["*.node", "addons.json", "NOTICE", "licenses", sbomName],
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(about, null, 2)}\n`);
  const components = await componentsOf(target.portable, target.arch);
  if (backend === "cuda") components.push(...cudaComponents(nvidia(target).home));
  addComponents(folder, about, components);
  pack(folder, out, backend === "cuda" ? undefined : mostBytes);
  return describe(folder, backend);
}

/**
 * The licences of everything that the addon is linked with, and the list of it.
 * @param {string} folder
 * @param {{ name: string, version: string, license: string, description: string }} about
 * @param {import("./components.js").Component[]} components
 */
function addComponents(folder, about, components) {
  for (const name of ["LICENSE", "NOTICE"]) copyFileSync(join(root, name), join(folder, name));
  mkdirSync(join(folder, "licenses"));
  for (const { name, text } of components) {
    if (text === undefined) continue;
    writeFileSync(join(folder, "licenses", name.replaceAll("/", "-")), licenceText(text));
  }
  writeFileSync(join(folder, sbomName), sbom(about, nativeEntries(components)));
}

/** @param {boolean} portable @param {string} arch */
async function componentsOf(portable, arch) {
  const { dir } = await ensureSource({ env: { ...process.env, LLAMA_CPP_DIR: makePlan().source }, say });
  return nativeComponents(dir, portable ? portableToolchain(arch, say).folder : undefined);
}

/** A toolkit of Python packages, or elsewhere than on x86-64 Linux the installed one. @param {Target} target */
function nvidia({ platform, arch }) {
  if (platform === "linux" && arch === "x64") return cudaToolkit(say);
  const { env } = process;
  const nvcc = findNvcc({ env, platform, arch, exists: existsSync, run: () => "" });
  return { home: dirname(dirname(nvcc ?? "")), flags: {}, definitions: {} }; // without one, checkToolchain says what to install
}

/**
 * @param {string} backend
 * @param {Target} target
 * @param {import("./levels.js").Level[]} levels
 * @param {string} [architectures] of CUDA
 */
function compile(backend, target, levels, architectures) {
  const names = levels.map(({ name }) => name).join(", ");
  say(`compiling for ${target.platform}-${target.arch}, ${backend}, ${names}`);
  return inTree(backend, target, levels, buildAddon, architectures);
}

/**
 * SQLite's addon, compiled like ours, for the wheel.
 * @param {Target} target
 * @param {import("./levels.js").Level[]} levels
 * @param {string} work
 */
async function compileSqlite(target, levels, work) {
  const path = join(work, `sqlite-${target.arch}.node`);
  return inTree(ordinary(target), target, levels, async (build) => {
    await buildTargets(build, ["tapline-sqlite"]);
    copyFileSync(join(build.tree, "addon", "tapline-sqlite.node"), path);
    refuseFolders(path);
    return path;
  });
}

/**
 * @template Result
 * @param {string} backend
 * @param {Target} target
 * @param {import("./levels.js").Level[]} levels
 * @param {(build: import("./cmake.js").Build) => Promise<Result>} work
 * @param {string} [architectures] of CUDA
 */
async function inTree(backend, { platform, arch, portable }, levels, work, architectures) {
  const lowest = levels.at(-1);
  if (lowest === undefined) throw new Error(`no level for ${platform}-${arch}`);
  const own = makePlan();
  const tree = treeOf(`release-${platform}-${arch}-${backend}`);
  const options = [cmakeOptions(lowest, platform, arch), own.options].join(" ").trim();
  const toolchain = portable ? portableToolchain(arch, say) : { flags: {}, definitions: {} };
  const cuda = architectures === undefined ? undefined : nvidia({ platform, arch, portable });
  const plan = {
    ...own,
    backend,
    tree,
    log: `${tree}.log`,
    processor: lowest.name.replaceAll("-", "_"),
    options,
    flags: { ...own.flags, ...toolchain.flags, ...cuda?.flags },
    definitions: {
      ...toolchain.definitions,
      // The toolkit's folder, where CMake would have the addon search, exists on this machine only.
      ...(cuda && {
        ...cuda.definitions,
        CMAKE_CUDA_ARCHITECTURES: architectures,
        CMAKE_SKIP_RPATH: "ON",
      }),
      ...(portable && { TAPLINE_LEVELS: levelList(levels) }),
    },
  };
  return withLock(`${tree}.lock`, waiting(say), async () => {
    const progress = createProgress({ stream: process.stdout });
    try {
      const build = await prepareBuild(plan, say, progress.line);
      await configure(build);
      return await work(build);
    } finally {
      progress.end();
    }
  });
}

/**
 * A platform package of another machine, unpacked for a look.
 * @param {string} tarball
 * @param {string} work
 */
function foreignPackage(tarball, work) {
  const folder = mkdtempSync(join(work, "foreign-"));
  execFileSync("tar", ["-xzf", tarball, "-C", folder]);
  const unpacked = join(folder, "package");
  const { version } = JSON.parse(readFileSync(join(unpacked, "package.json"), "utf8"));
  const { sources, backend } = JSON.parse(readFileSync(join(unpacked, "addons.json"), "utf8"));
  if (version !== main.version) {
    throw new BuildError(
      `${tarball} is version ${version}, and this is ${main.version}: make it again from this commit.`,
    );
  }
  if (sources !== sourcesHash()) {
    throw new BuildError(`${tarball} was compiled from other sources: make it again from this commit.`);
  }
  return describe(unpacked, backend);
}

/**
 * @param {string} folder
 * @param {string} backend
 */
function describe(folder, backend) {
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const manifest = sha256(readFileSync(join(folder, "addons.json")));
  const [os = "", cpu = ""] = [about.os[0], about.cpu[0]];
  return { name: about.name, version: about.version, platform: os, arch: cpu, backend, manifest };
}

/**
 * The main package as npm would pack it, and which platform packages belong to it.
 * @param {ReturnType<typeof describe>[]} packages
 * @param {string} work
 * @param {string} out
 * @returns {string} its folder
 */
function mainPackage(packages, work, out) {
  npm(["run", "build"], root);
  const plain = join(work, "main");
  mkdirSync(plain);
  pack(root, plain);
  const [tarball = ""] = readdirSync(plain);
  execFileSync("tar", ["-xzf", join(plain, tarball), "-C", plain]);
  const folder = join(plain, "package");
  const optionalDependencies = Object.fromEntries(packages.map(({ name, version }) => [name, version]));
  // What compiles src/ has done it: npm never runs `prepare` of a tarball.
  const { prepare: _, ...scripts } = main.scripts;
  const files = [...main.files, "prebuilt.json", sbomName];
  const packed = { ...withoutBuildPackages(main), scripts, optionalDependencies, files };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(packed, null, 2)}\n`);
  const { packages: locked } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  writeFileSync(join(folder, sbomName), sbom(main, npmEntries(locked, runtimePackages(locked))));
  writeFileSync(join(folder, "prebuilt.json"), `${JSON.stringify({ packages }, null, 2)}\n`);
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const { version } = main;
  writeFileSync(
    join(folder, "README.md"),
    readmeForPackages(readme, { address: repositoryAddress(main), version }),
  );
  pack(folder, out);
  return folder;
}

/**
 * @param {string} folder
 * @param {string} out
 * @param {number} [most] bytes
 */
function pack(folder, out, most) {
  const name = npm(["pack", "--silent", "--ignore-scripts", `--pack-destination=${out}`], folder).trim();
  sayPacked(join(out, name), most);
}

/**
 * @param {string[]} args
 * @param {string} cwd
 */
function npm(args, cwd) {
  const windows = process.platform === "win32";
  return execFileSync(windows ? "npm.cmd" : "npm", args, { cwd, encoding: "utf8", shell: windows });
}

/** @param {Buffer} bytes */
function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

try {
  await release();
} catch (error) {
  const sentence = sentenceOf(error);
  if (!sentence) throw error;
  console.error(`tapline: ${sentence}`);
  process.exitCode = 1;
}
