import os from "node:os";
import { BuildError } from "./errors.js";

const GIB = 1024 ** 3;
/** Memory of one compiler process at its peak: g++ on server-context.cpp, nvcc on the attention kernels. */
const memoryPerJob = { host: 1.5 * GIB, cuda: 3 * GIB };

/**
 * How many compilers may run in parallel without running out of memory. `os.availableParallelism` knows about CPU
 * affinity and `process.constrainedMemory` about a container's memory limit.
 * @param {string} backend
 * @param {{ env?: NodeJS.ProcessEnv, cores?: number, memory?: number }} [machine]
 */
export function jobs(backend, machine = {}) {
  const { env = process.env, cores = os.availableParallelism(), memory = usableMemory() } = machine;
  if (env.TAPLINE_JOBS) {
    const asked = Number(env.TAPLINE_JOBS);
    if (!Number.isInteger(asked) || asked < 1) {
      throw new BuildError(
        `TAPLINE_JOBS is a number of parallel compilers from 1 up, not "${env.TAPLINE_JOBS}".`,
      );
    }
    return asked;
  }
  const perJob = backend === "cuda" ? memoryPerJob.cuda : memoryPerJob.host;
  return Math.max(1, Math.min(cores, Math.floor(memory / perJob)));
}

function usableMemory() {
  const limit = process.constrainedMemory();
  return limit > 0 && limit < os.totalmem() ? limit : os.totalmem();
}
