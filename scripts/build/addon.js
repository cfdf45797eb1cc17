import { copyFileSync, renameSync, rmSync, statSync } from "node:fs";
import { buildAddon, configure } from "./cmake.js";
import { withLock } from "./lock.js";
import { activeAddon, stampFile } from "./paths.js";
import { makePlan, prepareBuild } from "./plan.js";
import { createProgress, duration } from "./progress.js";
import { isCurrent, readStamp, writeStamp } from "./stamp.js";

/**
 * @typedef {object} AddonOptions
 * @property {string} [sanitize] compile native/ with these sanitizers, in a separate tree
 * @property {boolean} [activate] make the result the addon that tapline loads (default: unless sanitized)
 * @property {boolean} [force] build even if the stamp says that nothing changed
 * @property {boolean} [verbose] show the compiler's output
 */

/**
 * Builds the addon unless it is built already, and makes it the one that tapline loads.
 * @param {(sentence: string) => void} say
 * @param {AddonOptions} [settings]
 * @returns {Promise<{ addon: string, backend: string, built: boolean }>}
 */
export async function makeAddon(
  say,
  { sanitize, activate = !sanitize, force = false, verbose = false } = {},
) {
  const plan = makePlan(sanitize);
  // The sources of an own llama.cpp tree are not in the hash: let Ninja or make look at those.
  const mayBeCurrent = activate && !force && !process.env.LLAMA_CPP_DIR;
  const current = () => mayBeCurrent && isCurrent(readStamp(stampFile), plan.inputs, activeAddon);
  const unchanged = { addon: activeAddon, backend: plan.backend, built: false };
  if (current()) {
    return unchanged;
  }
  return withLock(`${plan.tree}.lock`, waiting(say), async () => {
    if (current()) {
      return unchanged;
    }
    const started = Date.now();
    const { addon, llamaCpp } = await compile(plan, say, verbose);
    const seconds = Math.round((Date.now() - started) / 1000);
    const { size: bytes } = statSync(addon);
    if (activate) {
      putInPlace(addon);
      const { inputs, backend, chosen, options, source, flags, napi } = plan;
      const asked = { backend, chosen, options, source, flags };
      const result = { seconds, bytes, date: new Date().toISOString() };
      writeStamp(stampFile, { inputs, ...asked, llamaCpp, napi, ...result });
    }
    const result = activate ? activeAddon : addon;
    say(`built ${result} (${(bytes / 1e6).toFixed(1)} MB) in ${duration(seconds * 1000)}`);
    return { addon: result, backend: plan.backend, built: true };
  });
}

/**
 * The message for a person whose build has to wait for another one.
 * @param {(sentence: string) => void} say
 */
export function waiting(say) {
  return (/** @type {number} */ pid) => say(`another build (process ${pid}) is at work here: waiting for it`);
}

/**
 * @param {import("./plan.js").Plan} plan
 * @param {(sentence: string) => void} say
 * @param {boolean} verbose
 */
async function compile(plan, say, verbose) {
  const progress = createProgress({ stream: process.stdout });
  const onLine = verbose
    ? (/** @type {string} */ line) => void process.stdout.write(`${line}\n`)
    : progress.line;
  const build = await prepareBuild(plan, say, onLine);
  const helpers = [
    build.generator === "Ninja" ? "Ninja" : "",
    build.definitions.CMAKE_CXX_COMPILER_LAUNCHER ? "ccache" : "",
  ];
  const how = [`${build.jobs} at once`, ...helpers].filter(Boolean).join(", ");
  say(`compiling for ${plan.backend} (${plan.reason}; ${how}); the log is ${plan.log}`);
  rmSync(plan.log, { force: true });
  try {
    await configure(build);
    return { addon: await buildAddon(build), llamaCpp: build.llamaCpp };
  } finally {
    progress.end();
  }
}

/** A running process keeps the file it has loaded: the new one takes its name, not its place. @param {string} addon */
function putInPlace(addon) {
  const temporary = `${activeAddon}.${process.pid}`;
  try {
    copyFileSync(addon, temporary);
    try {
      renameSync(temporary, activeAddon);
    } catch (error) {
      // Windows does not replace a loaded library, but lets it be renamed.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EPERM") {
        throw error;
      }
      renameSync(activeAddon, `${activeAddon}.old-${process.pid}`);
      renameSync(temporary, activeAddon);
    }
  } finally {
    rmSync(temporary, { force: true });
  }
}
