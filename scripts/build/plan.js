import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chooseBackend } from "./backend.js";
import { buildVersions, ensureBuildPackages } from "./build-packages.js";
import { describeBuild } from "./cmake.js";
import { llamaCpp } from "./llama.js";
import { jobs } from "./parallel.js";
import { root, stampFile, treeOf } from "./paths.js";
import { ensureSource, linkSource, versionOf } from "./source.js";
import { compilerVariables, hashInputs, processorId, readStamp } from "./stamp.js";
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
 * @property {string} options extra CMake options
 * @property {Record<string, string>} [definitions] more of them, of a cross build
 * @property {string} source an own llama.cpp tree, or nothing
 * @property {Record<string, string>} flags compilers and their flags
 * @property {string} inputs
 */

/**
 * Choices made by hand, now or for the last build: without the latter, an `npm install` or `npx tapline` in a
 * shell that lacks the variables would build everything again, another way. Set to nothing, a variable undoes it.
 * @param {NodeJS.ProcessEnv} env
 * @param {import("./stamp.js").Stamp | undefined} previous
 */
export function choices(env, previous) {
  const set = Object.fromEntries(
    compilerVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );
  return {
    options: env.TAPLINE_CMAKE_OPTIONS ?? previous?.options ?? "",
    source: env.LLAMA_CPP_DIR ?? previous?.source ?? "",
    flags: { ...previous?.flags, ...set },
  };
}

/**
 * @param {string} [sanitize]
 * @returns {Plan}
 */
export function makePlan(sanitize) {
  const previous = readStamp(stampFile);
  const { backend, reason, chosen } = chooseBackend(previous);
  const { options, source, flags } = choices(process.env, previous);
  const tree = treeOf(backend, sanitize);
  const processor = processorId();
  const pkg = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const napi = String(pkg.binary.napi_versions[0]);
  const inputs = hashInputs(root, {
    llamaCpp: llamaCpp.integrity,
    addonApi: buildVersions(pkg)["node-addon-api"],
    napi,
    platform: process.platform,
    arch: process.arch,
    processor,
    backend,
    sanitize,
    options,
    source,
    flags,
  });
  return {
    backend,
    reason,
    chosen,
    tree,
    log: `${tree}.log`,
    processor,
    napi,
    sanitize,
    options,
    source,
    flags,
    inputs,
  };
}

/**
 * Checks that the plan can be carried out, fetches llama.cpp if need be, and says how to build.
 * @param {Plan} plan
 * @param {(sentence: string) => void} say
 * @param {(line: string) => void} onLine
 */
export async function prepareBuild(plan, say, onLine) {
  const env = { ...process.env, ...plan.flags, LLAMA_CPP_DIR: plan.source };
  const tools = checkToolchain(plan.backend, { env });
  checkDisk(plan.tree, plan.backend);
  await ensureBuildPackages(say, { env });
  const { dir, pinned } = await ensureSource({ env, say });
  const version = versionOf(dir);
  if (version !== llamaCpp.version) {
    say(`${dir} is llama.cpp v${version}; tapline is made for and tested with v${llamaCpp.version}`);
  }
  const source = pinned ? linkSource(dir, version) : dir;
  return describeBuild({ ...plan, source, version, tools, jobs: jobs(plan.backend), env, onLine });
}
