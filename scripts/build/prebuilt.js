import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { activeAddon, root } from "./paths.js";

/**
 * Looks for a prebuilt addon that this machine loads, in a package that was packed with some; says which, or why the
 * addon is compiled.
 * @param {(sentence: string) => void} say
 * @param {NodeJS.ProcessEnv} env
 * @param {string} [folder] the package's
 * @param {typeof import("../../src/native/prebuilt.js").findPrebuilt} [find] the loader's own choice, so that both always mean the same file
 * @returns {Promise<boolean>} nothing has to be compiled
 */
export async function usePrebuilt(say, env = process.env, folder = root, find = undefined) {
  // A clone, or a package that was packed with none; or this one was compiled before, and stays so.
  if (!existsSync(join(folder, "prebuilt.json")) || (folder === root && existsSync(activeAddon)))
    return false;
  const asked = asksForCompiling(env);
  if (asked) {
    say(`compiling the addon, as ${asked} asks`);
    return false;
  }
  const finder =
    find ?? (await import(new URL("../../dist/native/prebuilt.js", import.meta.url).href)).findPrebuilt;
  const { candidates, refused } = finder(folder, true);
  const backend = env.TAPLINE_BACKEND;
  for (const candidate of candidates) {
    if (backend && candidate.backend !== backend) continue;
    const failure = loadingFailure(candidate.path);
    if (failure === undefined) {
      say(`using the prebuilt ${candidate.backend} addon of ${candidate.package}`);
      return true;
    }
    refused.push(`${candidate.path} does not load here: ${failure}`);
  }
  if (
    backend &&
    candidates.length > 0 &&
    !candidates.some((/** @type {{ backend: string }} */ each) => each.backend === backend)
  ) {
    refused.push(`none is for TAPLINE_BACKEND=${backend}`);
  }
  say(`no prebuilt addon is used (${refused.join("; ")}): compiling`);
  return false;
}

/** @param {NodeJS.ProcessEnv} env */
function asksForCompiling(env) {
  const flag = env.npm_config_build_from_source;
  if (flag && flag !== "false") return "--build-from-source";
  return ["TAPLINE_CMAKE_OPTIONS", "LLAMA_CPP_DIR"].find((name) => env[name]);
}

/**
 * In a separate process: a missing library is a sentence there, a missing instruction a signal.
 * @param {string} path
 * @returns {string | undefined} nothing if it loads
 */
export function loadingFailure(path) {
  try {
    execFileSync(process.execPath, ["-e", "require(process.argv[1]).backendInfo()", path], {
      encoding: "utf8",
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, GGML_NO_BACKTRACE: "1" },
      timeout: 60_000,
    });
    return undefined;
  } catch (error) {
    const { stderr = "", signal } = /** @type {{ stderr?: string, signal?: string }} */ (error);
    return /^Error: (.*)$/m.exec(stderr)?.[1] ?? `it ended with ${signal ?? "an error"}`;
  }
}
