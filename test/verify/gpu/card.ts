import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { findNvcc, hasCublas } from "../../../scripts/build/backend.js";
import type { Card } from "./steps.js";

/** GiB of GPU memory: the 8B model in Q8_0, twice, and contexts of 32 requests. */
const leastMemory = 22;

/** What may be looked at; tests replace it. */
export interface Machine {
  env: NodeJS.ProcessEnv;
  platform: string;
  exists: (path: string) => boolean;
  /** Throws if the command is missing or fails. */
  run: (command: string, args: string[]) => string;
}

const thisMachine: Machine = {
  env: process.env,
  platform: process.platform,
  exists: existsSync,
  run: (command, args) =>
    execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
};

/** @throws Error that names everything the machine lacks, in one sentence */
export function findCard(machine: Machine = thisMachine): Card {
  const probe = { ...machine, arch: process.arch };
  const missing: string[] = [];
  const nvcc = machine.env.CUDACXX || findNvcc(probe);
  if (!nvcc) {
    missing.push("NVIDIA's CUDA toolkit (nvcc is neither on the PATH nor named by CUDACXX)");
  } else if (!hasCublas(probe, nvcc)) {
    missing.push(`cuBLAS (the toolkit of ${nvcc} does not have its headers)`);
  }
  let answer = "";
  try {
    const ask = ["--query-gpu=name,compute_cap,memory.total", "--format=csv,noheader,nounits"];
    answer = machine.run("nvidia-smi", ask);
  } catch {
    // Reported below.
  }
  const [, name, capability, mebibytes] = /^(.+), *(\d+\.\d+), *(\d+)$/m.exec(answer) ?? [];
  const memory = Number(mebibytes) / 1024;
  if (name === undefined || capability === undefined) {
    missing.push("an NVIDIA GPU with a working driver (nvidia-smi does not name one)");
  } else if (memory < leastMemory) {
    missing.push(`a GPU with ${leastMemory} GiB of memory (${name} has ${memory.toFixed(1)} GiB)`);
  }
  if (missing.length > 0) {
    const list = new Intl.ListFormat("en-GB").format(missing);
    throw new Error(`This machine lacks ${list}; --rehearse runs the steps on pretend GPUs instead.`);
  }
  return { name: name as string, capability: capability as string };
}
