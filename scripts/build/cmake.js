import { spawn } from "node:child_process";
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { findNvcc } from "./backend.js";
import { buildPackage } from "./build-packages.js";
import { BuildError } from "./errors.js";
import { buildCommand, root } from "./paths.js";
import { compilerVariables } from "./stamp.js";

/**
 * @typedef {object} Build
 * @property {string} tree the CMake tree
 * @property {string} log file that gets all output
 * @property {string} cmake
 * @property {number} jobs
 * @property {string} llamaCpp version of llama.cpp's tree
 * @property {Record<string, string>} definitions CMake's -D options
 * @property {string | undefined} generator
 * @property {NodeJS.ProcessEnv} env
 * @property {(line: string) => void} onLine
 */

/**
 * @param {object} facts
 * @param {string} facts.tree
 * @param {string} facts.log
 * @param {string} facts.backend
 * @param {string} facts.source llama.cpp's tree
 * @param {string} facts.version of that tree
 * @param {string} facts.processor
 * @param {import("./toolchain.js").Tools} facts.tools
 * @param {number} facts.jobs
 * @param {string} facts.options
 * @param {Record<string, string>} [facts.definitions] more of CMake's -D options
 * @param {string} [facts.sanitize]
 * @param {NodeJS.ProcessEnv} [facts.env]
 * @param {(line: string) => void} facts.onLine
 * @returns {Build}
 */
export function describeBuild(facts) {
  const { tree, log, backend, source, version, processor, tools, sanitize, onLine } = facts;
  const env = facts.env ?? process.env;
  /** @type {Record<string, string>} */
  const definitions = {
    LLAMA_CPP_DIR: cmakePath(source),
    TAPLINE_LLAMA_CPP_VERSION: version,
    NODE_ADDON_API_DIR: cmakePath(buildPackage("node-addon-api")),
    TAPLINE_BACKEND: backend,
    TAPLINE_CPU: processor,
    TAPLINE_SANITIZE: sanitize ?? "",
  };
  if (tools.ccache) {
    const languages = backend === "cuda" ? ["C", "CXX", "CUDA"] : ["C", "CXX"];
    for (const language of languages) {
      definitions[`CMAKE_${language}_COMPILER_LAUNCHER`] = cmakePath(tools.ccache);
    }
  }
  Object.assign(definitions, facts.definitions, extraDefinitions(facts.options));
  // On Windows cmake-js finds Visual Studio by itself, which Ninja cannot without its environment.
  const generator = process.platform === "win32" ? undefined : tools.ninja ? "Ninja" : "Unix Makefiles";
  const { cmake } = tools;
  return {
    tree,
    log,
    cmake,
    jobs: facts.jobs,
    llamaCpp: version,
    definitions,
    generator,
    env: buildEnvironment(env, backend, source),
    onLine,
  };
}

/**
 * @param {string} options TAPLINE_CMAKE_OPTIONS, e.g. "GGML_NATIVE=OFF CMAKE_CUDA_ARCHITECTURES=90"
 * @returns {Record<string, string>}
 */
function extraDefinitions(options) {
  const words = options.split(/\s+/).filter(Boolean);
  return Object.fromEntries(
    words.map((word) => {
      const [, name, value] = /^(?:-D)?(\w+)(?::\w+)?=(.*)$/.exec(word) ?? [];
      if (!name) {
        throw new BuildError(
          `TAPLINE_CMAKE_OPTIONS holds NAME=value words separated by spaces, not "${word}".`,
        );
      }
      return [name, value ?? ""];
    }),
  );
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {string} backend
 * @param {string} source
 */
function buildEnvironment(env, backend, source) {
  /** @type {NodeJS.ProcessEnv} */
  const result = {
    // A clone in another folder finds the objects of this one in the compiler cache.
    CCACHE_BASEDIR: root,
    CCACHE_NOHASHDIR: "1",
    CCACHE_SLOPPINESS: "time_macros",
    ...env,
    // Keeps ggml from asking git about whatever repository its source happens to lie in.
    GIT_CEILING_DIRECTORIES: dirname(source),
    NINJA_STATUS: "[%f/%t] ",
  };
  // Under node-gyp a make runs above us, and its job server is not ours.
  for (const name of ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "V"]) {
    delete result[name];
  }
  if (backend === "cuda" && !result.CUDACXX) {
    const nvcc = findNvcc({
      env,
      platform: process.platform,
      arch: process.arch,
      exists: existsSync,
      run: () => "",
    });
    if (nvcc) {
      result.CUDACXX = nvcc;
    }
  }
  return result;
}

/**
 * Configures the tree if it is new or an option changed, so that targets can be built in it. Options with other values are
 * given to CMake over its cache, and the objects stay: Ninja and make compile one again only if its own command line or
 * sources changed. CMake keeps options that are no longer given, and refuses a tree whose generator, folder or
 * compilers changed: there its cache is deleted first, and without one CMake deletes the objects of native/.
 * @param {Build} build
 */
export async function configure(build) {
  const cache = join(build.tree, "CMakeCache.txt");
  const file = join(build.tree, "tapline-configuration.json");
  const wanted = configuration(build);
  const known = existsSync(cache) && existsSync(file) ? readFileSync(file, "utf8") : "";
  if (known === wanted) return;
  if (!goesOverCache(known, wanted)) {
    rmSync(cache, { force: true });
    for (const name of compilerChecks(build.tree)) rmSync(name, { recursive: true, force: true });
  }
  const definitions = Object.entries(build.definitions).map(([name, value]) => `--CD${name}=${value}`);
  const generator = build.generator ? ["-G", build.generator] : [];
  await runLogged(build, process.execPath, [...cmakeJs(build), "configure", ...generator, ...definitions]);
  writeFileSync(`${file}.new`, wanted);
  renameSync(`${file}.new`, file);
}

/**
 * Whether only values of options differ, and none that CMake uses once: its own, such as those that name tools, and the
 * processor that it has looked at.
 * @param {string} known
 * @param {string} wanted
 */
function goesOverCache(known, wanted) {
  if (known === "") return false;
  const { definitions: before, ...had } = JSON.parse(known);
  const { definitions: now, ...has } = JSON.parse(wanted);
  const names = Object.keys(before);
  const once = [...names, ...Object.keys(now)].filter((name) => name.startsWith("CMAKE_"));
  if (now.GGML_NATIVE !== "OFF") once.push("TAPLINE_CPU");
  return (
    isDeepStrictEqual(had, has) &&
    names.every((name) => now[name] !== undefined) &&
    once.every((name) => before[name] === now[name])
  );
}

/**
 * Folders in which CMake keeps what it found out about the compilers, one per version of CMake.
 * @param {string} tree
 */
function compilerChecks(tree) {
  const folder = join(tree, "CMakeFiles");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.filter((name) => /^\d+\.\d+/.test(name)).map((name) => join(folder, name));
}

/**
 * @param {Build} build
 * @returns {Promise<string>} the addon's path
 */
export async function buildAddon(build) {
  // `build`, not `compile`, which answers a failed build with a second one from scratch.
  await runLogged(build, process.execPath, [
    ...cmakeJs(build),
    "build",
    "-T",
    "tapline",
    "-p",
    String(build.jobs),
  ]);
  return join(build.tree, "addon", "tapline.node");
}

/**
 * Builds several targets at once, such as llama.cpp's own tools (cmake-js takes only one).
 * @param {Build} build
 * @param {string[]} targets
 */
export async function buildTargets(build, targets) {
  const parallel = ["--config", "Release", "--parallel", String(build.jobs)];
  await runLogged(build, build.cmake, ["--build", build.tree, ...parallel, "--target", ...targets]);
}

/** @param {Build} build */
function cmakeJs({ tree }) {
  return [join(buildPackage("cmake-js"), "bin", "cmake-js"), "-d", root, "-O", tree];
}

/**
 * The tree's configuration, as text to compare.
 * @param {Build} build
 */
function configuration({ definitions, generator, env }) {
  const compilers = Object.fromEntries(compilerVariables.map((name) => [name, env[name]]));
  return `${JSON.stringify({ root, generator, definitions, compilers }, null, 2)}\n`;
}

/**
 * Runs a build command with all its output in the log file, and explains a failure by the log's telling lines.
 * @param {Build} build
 * @param {string} command
 * @param {string[]} args
 */
async function runLogged(build, command, args) {
  mkdirSync(build.tree, { recursive: true });
  /** @type {string[]} */
  const lines = [];
  const log = createWriteStream(build.log, { flags: "a" });
  log.on("error", (error) => lines.push(error.message)); // a full disk, most likely: the build will fail of it, too
  // cmake-js starts CMake, which starts Ninja, which starts compilers: a group can be ended as a whole.
  const detached = process.platform !== "win32";
  const child = spawn(command, args, {
    cwd: root,
    env: build.env,
    stdio: ["ignore", "pipe", "pipe"],
    detached,
  });
  const stop = forwardSignals(child);
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => {
      lines.push(line);
      log.write(`${line}\n`);
      build.onLine(line);
    });
  }
  /** @type {number | null} */
  const code = await new Promise((done, fail) => {
    child.on("error", fail);
    child.on("close", done);
  });
  stop();
  await new Promise((done) => log.end(done));
  if (code !== 0) {
    throw new BuildError(explainFailure(lines, build));
  }
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {() => void}
 */
function forwardSignals(child) {
  /** @param {NodeJS.Signals} signal */
  const forward = (signal) => {
    if (child.pid && process.platform !== "win32") {
      process.kill(-child.pid, signal);
    } else {
      child.kill(signal);
    }
    child.once("close", () => process.kill(process.pid, signal));
    stop();
  };
  const stop = () => {
    process.off("SIGINT", forward);
    process.off("SIGTERM", forward);
    process.off("SIGHUP", forward);
  };
  process.on("SIGINT", forward);
  process.on("SIGTERM", forward);
  process.on("SIGHUP", forward);
  return stop;
}

/**
 * @param {string[]} lines
 * @param {Pick<Build, "log" | "jobs">} build
 */
export function explainFailure(lines, { log, jobs }) {
  const text = lines.join("\n");
  if (
    /Killed signal terminated program|signal 9|out of memory allocating|cannot allocate memory/i.test(text)
  ) {
    return `The compiler ran out of memory with ${jobs} at once: try fewer with TAPLINE_JOBS=${Math.max(1, Math.floor(jobs / 2))} (log: ${log}).`;
  }
  if (/No space left on device/i.test(text)) {
    return `The disk is full: make room and run ${buildCommand} again (log: ${log}).`;
  }
  const telling = tellingLines(lines).slice(0, 12);
  const shown = telling.length > 0 ? telling : lines.slice(-12);
  return `The build failed; its whole output is in ${log}.\n${shown.map((line) => `  ${line}`).join("\n")}`;
}

/**
 * The lines that name a fault: those with an error of the compiler, linker or Ninja, and CMake's errors with the
 * indented lines that follow them, which hold the reason.
 * @param {string[]} lines
 */
function tellingLines(lines) {
  let inReason = false;
  return lines.filter((line) => {
    const continued = inReason && /^( {2}|\s*$)/.test(line);
    inReason = continued || /^CMake Error/.test(line);
    if (inReason) return line.trim() !== "";
    return !line.startsWith("ERROR OMG") && /\berror\b[: ]|undefined reference|ninja: error/i.test(line);
  });
}

/** CMake reads backslashes as escapes. @param {string} path */
function cmakePath(path) {
  return path.replaceAll("\\", "/");
}
