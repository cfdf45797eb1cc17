#!/usr/bin/env node
/**
 * `npm run release`: packs tapline, and for the platform that it runs on a package with the addon compiled for every
 * level of its processors, as tarballs in a folder.
 *   --out FOLDER        where they go (default: release)
 *   --cuda              a third package, with CUDA: needs the toolkit, takes long
 *   --levels A,B        only these, for a check
 *   --with TARBALL      a platform package made elsewhere from the same sources, to be named in the main one; repeatable
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
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
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { waiting } from "./addon.js";
import { buildAddon, configure } from "./cmake.js";
import { BuildError, sentenceOf } from "./errors.js";
import { onInterrupt } from "./interrupt.js";
import { besideGpu, cmakeOptions, levelsFor } from "./levels.js";
import { llamaCpp } from "./llama.js";
import { withLock } from "./lock.js";
import { root, treeOf } from "./paths.js";
import { makePlan, prepareBuild } from "./plan.js";
import { createProgress, duration } from "./progress.js";
import { hashInputs } from "./stamp.js";

const platform = `${process.platform}-${process.arch}`;
/** The default choices of a build without special packages. */
const ordinary = platform === "darwin-arm64" ? "metal" : "cpu";
const main = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** @param {string} sentence */
const say = (sentence) => console.log(`tapline: ${sentence}`);

/** What has to be the same for a package of one machine to go with the main package of another. */
function sourcesHash() {
  return hashInputs(root, {
    llamaCpp: llamaCpp.integrity,
    addonApi: main.dependencies["node-addon-api"],
    napi: main.binary.napi_versions,
  });
}

async function release() {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: join(root, "release") },
      cuda: { type: "boolean", default: false },
      levels: { type: "string" },
      with: { type: "string", multiple: true, default: [] },
    },
  });
  const out = resolve(values.out);
  const work = mkdtempSync(join(os.tmpdir(), "tapline-release-"));
  const clean = () => rmSync(work, { recursive: true, force: true });
  const stop = onInterrupt(clean);
  const started = Date.now();
  try {
    mkdirSync(out, { recursive: true });
    const packages = [await platformPackage(ordinary, chosenLevels(values.levels), work, out)];
    if (values.cuda) {
      const levels = levelsFor(process.platform, process.arch);
      packages.push(
        await platformPackage(
          "cuda",
          [levels.find(({ name }) => name === besideGpu) ?? levels[0]],
          work,
          out,
        ),
      );
    }
    for (const tarball of values.with) packages.push(foreignPackage(resolve(tarball), work));
    mainPackage(packages, work, out);
    say(`done in ${duration(Date.now() - started)}: \`npm install\` takes the tarballs of ${out} together`);
  } finally {
    stop();
    clean();
  }
}

/** @param {string | undefined} names */
function chosenLevels(names) {
  const levels = levelsFor(process.platform, process.arch);
  const wanted = names?.split(",") ?? levels.map(({ name }) => name);
  const unknown = wanted.find((name) => !levels.some((level) => level.name === name));
  if (unknown !== undefined) {
    throw new BuildError(`--levels takes ${levels.map(({ name }) => name).join(", ")}, not "${unknown}".`);
  }
  return levels.filter(({ name }) => wanted.includes(name));
}

/**
 * @param {string} backend
 * @param {(import("./levels.js").Level | undefined)[]} levels
 * @param {string} work
 * @param {string} out
 */
async function platformPackage(backend, levels, work, out) {
  const name = `${main.name}-${platform}${backend === ordinary ? "" : `-${backend}`}`;
  const folder = join(work, name);
  mkdirSync(folder);
  const addons = [];
  for (const level of levels) {
    if (level === undefined) continue;
    const file = `${level.name}.node`;
    const path = join(folder, file);
    copyFileSync(await compile(backend, level), path);
    shrink(path);
    const bytes = statSync(path).size;
    addons.push({ level: level.name, file, needs: level.needs, bytes, sha256: sha256(readFileSync(path)) });
  }
  const manifest = { llamaCpp: llamaCpp.version, backend, sources: sourcesHash(), addons };
  writeFileSync(join(folder, "addons.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const about = {
    name,
    version: main.version,
    description: `The native addon of tapline ${main.version} for ${platform}, compiled for ${backend}.`,
    license: main.license,
    os: [process.platform],
    cpu: [process.arch],
    ...(process.platform === "linux" && { libc: [usesGlibc() ? "glibc" : "musl"] }),
    files: ["*.node", "addons.json", "NOTICE", "licenses"],
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(about, null, 2)}\n`);
  await addLicences(folder);
  pack(folder, out);
  return describe(folder, backend);
}

function usesGlibc() {
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return header.glibcVersionRuntime !== undefined;
}

/** Linked libraries require their licences to be included. @param {string} folder */
async function addLicences(folder) {
  const { source } = makePlan();
  const { ensureSource } = await import("./source.js");
  const { dir } = await ensureSource({ env: { ...process.env, LLAMA_CPP_DIR: source }, say });
  for (const name of ["LICENSE", "NOTICE"]) copyFileSync(join(root, name), join(folder, name));
  mkdirSync(join(folder, "licenses"));
  copyFileSync(join(dir, "LICENSE"), join(folder, "licenses", "llama.cpp"));
  if (existsSync(join(dir, "licenses")))
    cpSync(join(dir, "licenses"), join(folder, "licenses"), { recursive: true });
}

/**
 * One CMake tree for all levels: only ggml's kernels have another command line, and only those are compiled again.
 * @param {string} backend
 * @param {import("./levels.js").Level} level
 */
async function compile(backend, level) {
  const own = makePlan();
  const tree = treeOf(`release-${backend}`);
  const options = [cmakeOptions(level, process.arch), own.options].join(" ").trim();
  const plan = {
    ...own,
    backend,
    tree,
    log: `${tree}.log`,
    processor: level.name.replaceAll("-", "_"),
    options,
  };
  return withLock(`${tree}.lock`, waiting(say), async () => {
    const progress = createProgress({ stream: process.stdout });
    say(`compiling for ${backend}, ${level.name}; the log is ${plan.log}`);
    try {
      const build = await prepareBuild(plan, say, progress.line);
      await configure(build);
      return await buildAddon(build);
    } finally {
      progress.end();
    }
  });
}

/** Without what only debuggers read. @param {string} path */
function shrink(path) {
  if (process.platform !== "linux") return;
  chmodSync(path, 0o755);
  try {
    execFileSync("strip", ["--strip-unneeded", path], { stdio: "ignore" });
  } catch {
    say(`\`strip\` is not here: ${path} is larger than it has to be`);
  }
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
  const files = [...main.files, "prebuilt.json"];
  const packed = { ...main, scripts, optionalDependencies, files };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(packed, null, 2)}\n`);
  writeFileSync(join(folder, "prebuilt.json"), `${JSON.stringify({ packages }, null, 2)}\n`);
  pack(folder, out);
}

/**
 * @param {string} folder
 * @param {string} out
 */
function pack(folder, out) {
  const name = npm(["pack", "--silent", "--ignore-scripts", `--pack-destination=${out}`], folder).trim();
  say(`${name}: ${(statSync(join(out, name)).size / 1e6).toFixed(1)} MB`);
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
