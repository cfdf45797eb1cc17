import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, statfsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { findNvcc, hasCublas } from "./backend.js";
import { BuildError } from "./errors.js";
import { buildCommand } from "./paths.js";

/** @type {[major: number, minor: number]} */
const oldestCmake = [3, 21];
/** What the CMake tree of a backend takes, with some room. */
const neededMegabytes = /** @type {Record<string, number>} */ ({
  cpu: 500,
  metal: 500,
  vulkan: 1500,
  cuda: 3000,
});

/**
 * @typedef {object} Tools
 * @property {string} cmake
 * @property {string | undefined} ninja
 * @property {string | undefined} ccache
 */

/**
 * Finds what compiles, or says in one sentence what to install.
 * @param {string} backend
 * @param {{ env?: NodeJS.ProcessEnv, platform?: string, exists?: (path: string) => boolean }} [machine]
 * @returns {Tools}
 */
export function checkToolchain(backend, machine = {}) {
  const { env = process.env, platform = process.platform, exists = existsSync } = machine;
  /** @param {string} name */
  const find = (name) => which(name, env, platform);

  const cmake = find("cmake");
  if (!cmake) {
    throw missing("CMake is not on the PATH", "cmake", platform);
  }
  const version = cmakeVersion(cmake);
  if (!version) {
    throw missing(`${cmake} does not run`, "cmake", platform);
  }
  if (version[0] < oldestCmake[0] || (version[0] === oldestCmake[0] && version[1] < oldestCmake[1])) {
    throw missing(
      `CMake ${version.join(".")} is too old (${oldestCmake.join(".")} or newer is needed)`,
      "cmake",
      platform,
    );
  }
  const ninja = find("ninja");
  if (platform !== "win32") {
    if (!env.CXX && !find("c++") && !find("g++") && !find("clang++")) {
      throw missing("No C++ compiler is on the PATH", "g++", platform);
    }
    if (!env.CC && !find("cc") && !find("gcc") && !find("clang")) {
      throw missing("No C compiler is on the PATH", "gcc", platform);
    }
    if (!ninja && !find("make") && !find("gmake")) {
      throw missing("Neither Ninja nor make is on the PATH", "make", platform);
    }
  }
  if (backend === "cuda") {
    const nvcc = env.CUDACXX || findNvcc({ env, platform, arch: "", exists, run: () => "" });
    if (!nvcc) {
      throw new BuildError(
        "TAPLINE_BACKEND=cuda needs NVIDIA's CUDA toolkit: put its nvcc on the PATH or set CUDACXX, or build for the CPU with TAPLINE_BACKEND=cpu.",
      );
    }
    if (!hasCublas({ env, exists }, nvcc)) {
      throw new BuildError(
        `TAPLINE_BACKEND=cuda needs cuBLAS, and the CUDA toolkit of ${nvcc} comes without its headers: install NVIDIA's full toolkit (or its package libcublas-dev), or build for the CPU with TAPLINE_BACKEND=cpu.`,
      );
    }
  }
  if (backend === "vulkan" && !find("glslc")) {
    throw new BuildError(
      "TAPLINE_BACKEND=vulkan needs the Vulkan SDK with its glslc on the PATH: install it, or build for the CPU with TAPLINE_BACKEND=cpu.",
    );
  }
  if (backend === "metal" && platform !== "darwin") {
    throw new BuildError(
      "TAPLINE_BACKEND=metal works on macOS only: leave it unset to have the backend chosen.",
    );
  }
  return { cmake, ninja, ccache: find("ccache") ?? find("sccache") };
}

/**
 * @param {string} folder where the CMake tree will lie
 * @param {string} backend
 * @param {(folder: string) => number} [freeBytes]
 */
export function checkDisk(folder, backend, freeBytes = freeIn) {
  const needed = neededMegabytes[backend] ?? 500;
  if (freeBytes(folder) < needed * 1024 ** 2) {
    throw new BuildError(`Less than ${needed} MB are free in ${folder}: make room and run ${buildCommand}.`);
  }
}

/** @param {string} folder */
function freeIn(folder) {
  mkdirSync(folder, { recursive: true });
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/**
 * @param {string} name
 * @param {NodeJS.ProcessEnv} env
 * @param {string} platform
 * @returns {string | undefined}
 */
function which(name, env, platform) {
  const extensions = platform === "win32" ? [".exe", ".cmd", ".bat"] : [""];
  for (const folder of (env.PATH ?? env.Path ?? "").split(delimiter)) {
    for (const extension of extensions) {
      const path = join(folder, name + extension);
      if (folder && existsSync(path)) {
        return path;
      }
    }
  }
  return undefined;
}

/**
 * @param {string} cmake
 * @returns {[number, number] | undefined} nothing if it does not run
 */
function cmakeVersion(cmake) {
  let text = "";
  try {
    text = execFileSync(cmake, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    // a leftover that does not run, such as pip's script of a removed package
  }
  const match = /version (\d+)\.(\d+)/.exec(text);
  return match ? [Number(match[1]), Number(match[2])] : undefined;
}

/**
 * @param {string} what
 * @param {"cmake" | "g++" | "gcc" | "make"} tool
 * @param {string} platform
 */
function missing(what, tool, platform) {
  const how = /** @type {Record<string, Record<string, string>>} */ ({
    darwin: {
      cmake: "`brew install cmake`",
      "g++": "`xcode-select --install`",
      gcc: "`xcode-select --install`",
      make: "`xcode-select --install` or `brew install ninja`",
    },
    win32: {
      cmake: "`winget install Kitware.CMake`",
      "g++": "Visual Studio's C++ build tools",
      make: "`winget install Ninja-build.Ninja`",
    },
    linux: {
      cmake: "`sudo apt-get install cmake` or your distribution's package",
      "g++": "`sudo apt-get install g++` or your distribution's package",
      gcc: "`sudo apt-get install gcc` or your distribution's package",
      make: "`sudo apt-get install ninja-build` or your distribution's package",
    },
  });
  const hint = (how[platform] ?? how.linux)?.[tool];
  return new BuildError(`${what}: install it (${hint}) and run ${buildCommand} again.`);
}
