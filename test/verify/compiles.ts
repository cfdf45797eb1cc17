/**
 * Whether native/ compiles without a warning for machines that we do not have: `npm run verify:compiles`, or with parts of
 * targets' names after `--`. Nothing is linked or run, and llama.cpp itself is not compiled. The compilers are Debian's
 * packages g++-aarch64-linux-gnu and g++-mingw-w64-x86-64-posix, and Zig's, which `npm run release` also uses.
 *   --only PATTERN   files whose path matches
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { configure } from "../../scripts/build/cmake.js";
import { onInterrupt } from "../../scripts/build/interrupt.js";
import { root, treeOf } from "../../scripts/build/paths.js";
import { makePlan, prepareBuild } from "../../scripts/build/plan.js";
import { zigCompiler } from "../../scripts/build/portable.js";
import { type CompileCommand, compilation } from "./compiles/arguments.js";

interface Target {
  compiler: string;
  /** Arguments that CMake would give there. */
  own: string[];
  env?: NodeJS.ProcessEnv;
}

const run = promisify(execFile);
const say = (sentence: string) => console.error(`tapline: ${sentence}`);

function zig(name: string, ...own: string[]): Target {
  const { flags } = zigCompiler(name, say);
  // Options against warnings are those of the compiler here.
  return { compiler: flags.CXX, own: [...own, "-Wno-unknown-warning-option"], env: flags };
}

const arm = "-U__ARM_FEATURE_FP16_VECTOR_ARITHMETIC";
const targets: Record<string, () => Target> = {
  "linux-arm64-g++": () => ({ compiler: "aarch64-linux-gnu-g++", own: ["-D_GNU_SOURCE", arm] }),
  "linux-arm64-clang": () => zig("aarch64-linux-gnu.2.28", "-D_GNU_SOURCE", arm),
  "darwin-arm64-clang": () => zig("aarch64-macos", "-D_DARWIN_C_SOURCE", arm),
  "darwin-x64-clang": () => zig("x86_64-macos", "-D_DARWIN_C_SOURCE"),
  // llama.cpp's server requires Windows 10.
  "win32-x64-g++": () => ({ compiler: "x86_64-w64-mingw32-g++-posix", own: ["-D_WIN32_WINNT=0x0A00"] }),
};

/** How CMake compiles the files here, and a compiler cache if there is one. */
async function commandsHere(): Promise<{ commands: CompileCommand[]; ccache: string | undefined }> {
  const tree = treeOf("compiles");
  const definitions = { CMAKE_EXPORT_COMPILE_COMMANDS: "ON" };
  const plan = { ...makePlan(), backend: "cpu", options: "", tree, log: `${tree}.log`, definitions };
  const build = await prepareBuild(plan, say, () => {});
  await configure(build);
  const commands = JSON.parse(readFileSync(join(tree, "compile_commands.json"), "utf8"));
  return { commands, ccache: build.definitions.CMAKE_CXX_COMPILER_LAUNCHER };
}

/** @returns the compiler's messages; none if the file compiles */
async function compile(target: Target, ccache: string | undefined, args: string[]): Promise<string> {
  const words = [ccache, target.compiler, ...args, ...target.own].filter((word) => word !== undefined);
  const env = { CCACHE_BASEDIR: root, CCACHE_NOHASHDIR: "1", ...process.env, ...target.env };
  try {
    await run(words[0] as string, words.slice(1), { env, maxBuffer: 2 ** 28 });
    return "";
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return stderr || message;
  }
}

const { values, positionals: asked } = parseArgs({
  options: { only: { type: "string", default: "" } },
  allowPositionals: true,
});
const names = Object.keys(targets).filter(
  (name) => asked.length === 0 || asked.some((word) => name.includes(word)),
);
if (names.length === 0) throw new Error(`The targets are ${Object.keys(targets).join(", ")}.`);
const folder = mkdtempSync(join(tmpdir(), "tapline-compiles-"));
const clean = () => rmSync(folder, { recursive: true, force: true });
const stop = onInterrupt(clean);
let [passed, failed] = [0, 0];
try {
  const { commands, ccache } = await commandsHere();
  const planted = join(folder, "planted.cpp");
  writeFileSync(planted, "int planted(int unused) { return 0; }\n");
  for (const name of names) {
    const started = Date.now();
    const target = (targets[name] as () => Target)();
    const object = (i: number) => join(folder, `${name}-${i}.o`);
    const all = commands.flatMap((each, i) => compilation(each, root, object(i)) ?? []);
    if (all.length < 100) throw new Error(`CMake's commands have only ${all.length} files of native/.`);
    const work = all.filter(({ file }) => new RegExp(values.only).test(file));
    const faults: string[] = [];
    // A compiler that is missing, or that hides warnings, fails here.
    const told = await compile(target, ccache, [
      "-Wall",
      "-Wextra",
      "-Werror",
      "-c",
      planted,
      "-o",
      object(0),
    ]);
    if (!/unused parameter/.test(told)) throw new Error(`${name} did not report a planted warning: ${told}`);
    const todo = [...work];
    const worker = async () => {
      for (let next = todo.shift(); next !== undefined; next = todo.shift()) {
        const messages = await compile(target, ccache, next.args);
        if (messages === "") continue;
        faults.push(next.file);
        console.log(`${next.file}\n${messages.split("\n").slice(0, 12).join("\n")}`);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, worker));
    failed += faults.length;
    passed += work.length - faults.length;
    const verdict = faults.length === 0 ? "compiles" : "FAILED";
    console.log(
      `${verdict}  ${name}: ${work.length} files in ${Math.round((Date.now() - started) / 1000)} s`,
    );
  }
} finally {
  clean(); // a signal while it deletes is still ours
  stop();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
