import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { BuildError } from "./errors.js";

export const backends = ["cpu", "cuda", "metal", "vulkan"];

/**
 * @typedef {object} Probe what backend detection may look at; tests replace it
 * @property {NodeJS.ProcessEnv} env
 * @property {string} platform
 * @property {string} arch
 * @property {(path: string) => boolean} exists
 * @property {(command: string, args: string[]) => string} run throws when the command is missing or fails
 */

/** @type {Probe} */
const thisMachine = {
  env: process.env,
  platform: process.platform,
  arch: process.arch,
  exists: existsSync,
  run: (command, args) =>
    execFileSync(command, args, { encoding: "utf8", timeout: 20_000, stdio: ["ignore", "pipe", "ignore"] }),
};

/**
 * Chooses what the addon computes on. A choice made by hand holds until another is made, so that a later
 * `npm install` without TAPLINE_BACKEND does not throw a chosen build away.
 * @param {{ backend: string, chosen: boolean } | undefined} previous from the stamp of the last build
 * @param {Partial<Probe>} [overrides]
 * @returns {{ backend: string, reason: string, chosen: boolean }}
 */
export function chooseBackend(previous, overrides = {}) {
  const probe = { ...thisMachine, ...overrides };
  const asked = probe.env.TAPLINE_BACKEND;
  if (asked) {
    if (!backends.includes(asked)) {
      throw new BuildError(`TAPLINE_BACKEND is cpu, cuda, metal or vulkan, not "${asked}".`);
    }
    return { backend: asked, reason: "TAPLINE_BACKEND", chosen: true };
  }
  if (previous?.chosen) {
    return { backend: previous.backend, reason: "chosen for the last build", chosen: true };
  }
  return { ...detectBackend(probe), chosen: false };
}

/**
 * @param {Probe} probe
 * @returns {{ backend: string, reason: string }}
 */
function detectBackend(probe) {
  if (probe.platform === "darwin") {
    return probe.arch === "arm64"
      ? { backend: "metal", reason: "Apple silicon" }
      : { backend: "cpu", reason: "a Mac without Apple silicon" };
  }
  const nvcc = findNvcc(probe);
  if (!nvcc) {
    return { backend: "cpu", reason: "no CUDA toolkit found" };
  }
  if (!hasWorkingGpu(probe)) {
    return { backend: "cpu", reason: "a CUDA toolkit but no working NVIDIA GPU found" };
  }
  if (!hasCublas(probe, nvcc)) {
    return { backend: "cpu", reason: `the CUDA toolkit of ${nvcc} has no cuBLAS headers` };
  }
  return { backend: "cuda", reason: `${nvcc} and a working NVIDIA GPU` };
}

/**
 * @param {Probe} probe
 * @returns {string | undefined}
 */
export function findNvcc({ env, platform, exists }) {
  const name = platform === "win32" ? "nvcc.exe" : "nvcc";
  const folders = (env.PATH ?? env.Path ?? "").split(delimiter).filter(Boolean);
  for (const home of [env.CUDA_PATH, env.CUDA_HOME, "/usr/local/cuda"]) {
    if (home) {
      folders.push(join(home, "bin"));
    }
  }
  return folders.map((folder) => join(folder, name)).find((path) => exists(path));
}

/** @param {Probe} probe */
function hasWorkingGpu({ run }) {
  try {
    return /^GPU \d+:/m.test(run("nvidia-smi", ["-L"]));
  } catch {
    return false;
  }
}

/**
 * Some toolkits (conda's and pip's minimal ones) come without cuBLAS, which ggml-cuda needs.
 * @param {Pick<Probe, "env" | "exists">} probe
 * @param {string} nvcc
 */
export function hasCublas({ env, exists }, nvcc) {
  const home = dirname(dirname(nvcc));
  // Toolkits put it in include/, conda's below targets/, NVIDIA's HPC SDK in a folder beside its compilers.
  const homes = [home, env.CUDA_PATH, env.CUDA_HOME, "/usr/local/cuda", "/usr"].filter((each) => each);
  const folders = [
    ...homes.flatMap((each) => [
      join(each ?? "", "include"),
      join(each ?? "", "targets", "x86_64-linux", "include"),
      join(each ?? "", "targets", "sbsa-linux", "include"),
    ]),
    join(dirname(home), "math_libs", "include"),
    join(dirname(dirname(home)), "math_libs", "include"),
    ...(env.CPATH ?? "").split(delimiter).filter(Boolean),
  ];
  return folders.some((folder) => exists(join(folder, "cublas_v2.h")));
}
