import { createHash } from "node:crypto";
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join, relative } from "node:path";

/**
 * @typedef {object} Stamp written beside the addon after a successful build
 * @property {string} inputs hash of all that the addon is built from
 * @property {string} backend
 * @property {boolean} chosen by hand rather than detected
 * @property {string} options extra CMake options
 * @property {string} source an own llama.cpp tree, or nothing
 * @property {Record<string, string>} [flags] compilers and their flags, as the environment named them
 * @property {string} llamaCpp
 * @property {string} napi
 * @property {number} seconds the build took
 * @property {number} bytes of the addon
 * @property {string} date
 */

/** Variables that CMake itself reads from the environment: another value makes a different addon. */
export const compilerVariables = ["CC", "CXX", "CFLAGS", "CXXFLAGS", "CUDACXX", "CUDAFLAGS", "LDFLAGS"];

/**
 * One hash over the native sources, the build description and the options: if it is the same, the addon is.
 * @param {string} root
 * @param {Record<string, unknown>} options everything else that the result depends on
 */
export function hashInputs(root, options) {
  const hash = createHash("sha256").update(JSON.stringify(options));
  const ours = ["exports.map", "rename.js"].map((name) => join(root, "scripts", "build", name));
  const description = [join(root, "CMakeLists.txt"), ...ours];
  for (const file of [...description, ...sourcesIn(join(root, "native"))]) {
    hash.update(`\0${relative(root, file).replaceAll("\\", "/")}\0`).update(readFileSync(file));
  }
  return hash.digest("hex");
}

/**
 * @param {string} folder
 * @returns {string[]}
 */
function sourcesIn(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(c|cc|cmake|cpp|cu|h|hpp|inc|m|mm)$/.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/**
 * Identifies the processor that GGML_NATIVE tunes for: a build or a compiler cache that was carried to another
 * machine must not be reused there.
 */
export function processorId() {
  let features = "";
  try {
    features = /^(flags|Features)\s*:.*$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[0] ?? "";
  } catch {
    // not Linux: the model's name has to do
  }
  const text = [process.arch, os.cpus()[0]?.model ?? "", features].join("\n");
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

/**
 * @param {string} file
 * @returns {Stamp | undefined}
 */
export function readStamp(file) {
  try {
    const stamp = JSON.parse(readFileSync(file, "utf8"));
    return typeof stamp?.inputs === "string" && typeof stamp.backend === "string" ? stamp : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {string} file
 * @param {Stamp} stamp
 */
export function writeStamp(file, stamp) {
  const temporary = `${file}.${process.pid}`;
  writeFileSync(temporary, `${JSON.stringify(stamp, null, 2)}\n`);
  renameSync(temporary, file);
}

/**
 * @param {Stamp | undefined} stamp
 * @param {string} inputs
 * @param {string} addon
 */
export function isCurrent(stamp, inputs, addon) {
  return stamp?.inputs === inputs && stamp.bytes === statSync(addon, { throwIfNoEntry: false })?.size;
}
