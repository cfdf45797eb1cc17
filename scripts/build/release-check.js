import { execFileSync } from "node:child_process";
import { chmodSync, statSync } from "node:fs";
import { basename } from "node:path";
import { BuildError } from "./errors.js";
import { beyond, foldersNamedIn, needsOf } from "./needs.js";
import { root } from "./paths.js";
import { oldestGlibc } from "./portable.js";
import { loadingFailure } from "./prebuilt.js";
import { cacheFolder } from "./source.js";

/** @typedef {{ platform: string, arch: string, portable: boolean }} Target */

/** What a package with an addon for processors may take, packed, in bytes. CUDA's has kernels per generation of cards. */
export const mostBytes = 15e6;

/** @param {string} sentence */
export const say = (sentence) => console.log(`tapline: ${sentence}`);

/** Whether addons for Linux made here are for glibc. */
export function usesGlibc() {
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return header.glibcVersionRuntime !== undefined;
}

/** Removes debug information; the portable linker already does. @param {string} path @param {Target} target */
export function shrink(path, { portable }) {
  if (portable || process.platform !== "linux") return;
  chmodSync(path, 0o755);
  try {
    execFileSync("strip", ["--strip-unneeded", path], { stdio: "ignore" });
  } catch {
    say(`\`strip\` is not here: ${path} is larger than it has to be`);
  }
}

/**
 * Checks that an addon loads where promised (its symbol versions, and whether it loads here if this machine can run it),
 * and that it names no folder of this machine.
 * @param {string} path
 * @param {Target} target
 * @param {string} backend
 * @param {string[]} features of processors that the lowest level needs
 */
export async function checkAddon(path, { platform, arch, portable }, backend, features) {
  const needs = platform === "linux" ? needsOf(path) : { libraries: [], versions: [], folders: [] };
  if (needs.folders.length > 0) {
    throw new BuildError(
      `The addon searches ${needs.folders.join(", ")} for libraries, folders of this machine.`,
    );
  }
  const above = portable ? beyond(needs, oldestGlibc) : [];
  if (above.length > 0) {
    throw new BuildError(`The addon needs ${above.join(", ")}: at most glibc ${oldestGlibc} is allowed.`);
  }
  if (portable) refuseFolders(path);
  const name = `the addon for ${platform}-${arch}`;
  // From dist/, as in an installation.
  const { processorFeatures } = await import(new URL("../../dist/native/prebuilt.js", import.meta.url).href);
  const here = processorFeatures();
  if (platform !== process.platform || arch !== process.arch || !features.every((each) => here.has(each))) {
    say(`${name} was not loaded as a check: this processor cannot run it`);
    return;
  }
  const failure = loadingFailure(path);
  if (failure === undefined) return;
  if (backend === "cuda" && /\blibcuda\.so\.1\b/.test(failure)) {
    say(`${name} with CUDA was not loaded as a check: this machine has no NVIDIA driver`);
    return;
  }
  throw new BuildError(`The addon does not load: ${failure}`);
}

/** @param {string} path of an addon */
export function refuseFolders(path) {
  const named = foldersNamedIn(path, [root, cacheFolder(process.env)]);
  if (named.length === 0) return;
  throw new BuildError(
    `${basename(path)} contains the path ${named.join(" and ")}: its bytes would depend on it.`,
  );
}

/**
 * Reports a packed file's size.
 * @param {string} path
 * @param {number} [most] bytes
 */
export function sayPacked(path, most = Number.POSITIVE_INFINITY) {
  const { size } = statSync(path);
  say(`${basename(path)}: ${megabytes(size)}`);
  if (size > most) {
    throw new BuildError(
      `${basename(path)} takes ${megabytes(size)}, and at most ${megabytes(most)} are allowed.`,
    );
  }
}

/** @param {number} bytes */
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
