#!/usr/bin/env node
/**
 * Builds programs of llama.cpp itself in the addon's CMake tree, to measure and verify against:
 *   node scripts/build/tools.js llama-server test-llama-archs
 * Prints one line per program, its name and its path.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { waiting } from "./addon.js";
import { buildTargets, configure } from "./cmake.js";
import { BuildError, sentenceOf } from "./errors.js";
import { withLock } from "./lock.js";
import { makePlan, prepareBuild } from "./plan.js";
import { createProgress } from "./progress.js";

/** The programs that this project uses; any other target of llama.cpp works too. */
export const knownTools = [
  "eval-callback-flushed",
  "llama-batched-bench",
  "llama-bench",
  "llama-quantize",
  "llama-server",
  "rpc-server",
  "tapline-denormals",
  "tapline-fixed-product",
  "tapline-graph-points",
  "tapline-instructions",
  "tapline-pretend-gpu",
  "tapline-row-maps",
  "test-llama-archs",
  "test-llama-archs-deep",
  "test-llama-archs-experts",
];

/** An object library: it has no program to find. */
const objectsOnly = "tapline-assumptions";

/** Programs whose CMake target, and so whose file, has another name. */
const targetNames = /** @type {Record<string, string>} */ ({ "rpc-server": "ggml-rpc-server" });

/**
 * @param {string[]} names
 * @param {{ say?: (sentence: string) => void, verbose?: boolean }} [options]
 * @returns {Promise<Record<string, string>>} the path of each program by its name
 */
export async function buildTools(names, options = {}) {
  const { say = (sentence) => console.error(`tapline: ${sentence}`), verbose = false } = options;
  const plan = makePlan();
  const progress = createProgress({ stream: process.stderr });
  const onLine = verbose
    ? (/** @type {string} */ line) => void process.stderr.write(`${line}\n`)
    : progress.line;
  return withLock(`${plan.tree}.lock`, waiting(say), async () => {
    const targets = names.map((name) => targetNames[name] ?? name);
    const log = `${plan.tree}-tools.log`;
    const build = await prepareBuild({ ...plan, log }, say, onLine);
    try {
      await configure(build);
      await buildTargets(build, targets);
    } finally {
      progress.end();
    }
    const files = names.filter((name) => name !== objectsOnly);
    return Object.fromEntries(files.map((name) => [name, find(plan.tree, targetNames[name] ?? name)]));
  });
}

/**
 * @param {string} tree
 * @param {string} name
 */
function find(tree, name) {
  const file = process.platform === "win32" ? `${name}.exe` : name;
  const addon = join(tree, "addon", `${name}.node`); // tapline-pretend-gpu is not a program
  const places = [join(tree, "bin", file), join(tree, "bin", "Release", file), join(tree, file), addon];
  const path = places.find((each) => existsSync(each));
  if (!path) {
    throw new BuildError(`${name} was built, but is not in ${join(tree, "bin")}.`);
  }
  return path;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const names = process.argv.slice(2);
    if (names.length === 0) {
      throw new BuildError(`Name one or more of llama.cpp's programs, e.g. ${knownTools.join(", ")}.`);
    }
    for (const [name, path] of Object.entries(await buildTools(names))) {
      console.log(`${name}\t${path}`);
    }
  } catch (error) {
    const sentence = sentenceOf(error);
    if (!sentence) {
      throw error;
    }
    console.error(`tapline: ${sentence}`);
    process.exitCode = 1;
  }
}
