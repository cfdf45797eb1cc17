import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chooseBackend } from "./backend.js";
import { describeBuild } from "./cmake.js";
import { llamaCpp } from "./llama.js";
import { jobs } from "./parallel.js";
import { root, stampFile, treeOf } from "./paths.js";
import { ensureSource } from "./source.js";
import { hashInputs, processorId, readStamp } from "./stamp.js";
import { checkDisk, checkToolchain } from "./toolchain.js";

/**
 * @typedef {object} Plan all that is known before anything is fetched or compiled
 * @property {string} backend
 * @property {string} reason
 * @property {boolean} chosen
 * @property {string} tree
 * @property {string} log
 * @property {string} processor
 * @property {string} napi
 * @property {string | undefined} sanitize
 * @property {string} inputs
 */

/**
 * @param {string} [sanitize]
 * @returns {Plan}
 */
export function makePlan(sanitize) {
  const { backend, reason, chosen } = chooseBackend(readStamp(stampFile));
  const tree = treeOf(backend, sanitize);
  const processor = processorId();
  const pkg = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const napi = String(pkg.binary.napi_versions[0]);
  const inputs = hashInputs(root, {
    llamaCpp: llamaCpp.integrity,
    addonApi: pkg.dependencies["node-addon-api"],
    napi,
    platform: process.platform,
    arch: process.arch,
    processor,
    backend,
    options: process.env.TAPLINE_CMAKE_OPTIONS ?? "",
    source: process.env.LLAMA_CPP_DIR ?? "",
  });
  return { backend, reason, chosen, tree, log: `${tree}.log`, processor, napi, sanitize, inputs };
}

/**
 * Checks that the plan can be carried out, fetches llama.cpp if need be, and says how to build.
 * @param {Plan} plan
 * @param {(sentence: string) => void} say
 * @param {(line: string) => void} onLine
 */
export async function prepareBuild(plan, say, onLine) {
  const tools = checkToolchain(plan.backend);
  checkDisk(plan.tree, plan.backend);
  const { dir: source } = await ensureSource({ say });
  return describeBuild({ ...plan, source, tools, jobs: jobs(plan.backend), onLine });
}
