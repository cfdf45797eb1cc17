/**
 * Whether the whole addon, llama.cpp included, compiles and links for Windows x86-64 with MinGW's g++ (Debian's package
 * g++-mingw-w64-x86-64-posix), needs nothing but Windows and Node.js, and works under Wine: `npm run verify:windows`.
 */
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { buildAddon, configure } from "../../scripts/build/cmake.js";
import { cmakeOptions, levelsFor } from "../../scripts/build/levels.js";
import { treeOf } from "../../scripts/build/paths.js";
import { makePlan, prepareBuild } from "../../scripts/build/plan.js";
import { createProgress, duration } from "../../scripts/build/progress.js";
import { exportsAndImports, unexpected } from "./windows/tables.js";
import { hasWine, underWine } from "./windows/wine.js";

const prefix = "x86_64-w64-mingw32";
// MinGW's headers before version 11 have this structure of Windows for processes only; for threads it is the same.
const throttling = [
  "THREAD_POWER_THROTTLING_STATE=PROCESS_POWER_THROTTLING_STATE",
  "THREAD_POWER_THROTTLING_CURRENT_VERSION=PROCESS_POWER_THROTTLING_CURRENT_VERSION",
  "THREAD_POWER_THROTTLING_EXECUTION_SPEED=PROCESS_POWER_THROTTLING_EXECUTION_SPEED",
];
const say = (sentence: string) => console.log(`tapline: ${sentence}`);

async function compile(): Promise<string> {
  const tree = treeOf("windows");
  const level = levelsFor("win32", "x64").at(-1);
  if (level === undefined) throw new Error("Windows x86-64 has no level.");
  const own = makePlan();
  const progress = createProgress({ stream: process.stdout });
  try {
    const plan = {
      ...own,
      backend: "cpu",
      tree,
      log: `${tree}.log`,
      processor: level.name.replaceAll("-", "_"),
      options: [cmakeOptions(level, "win32", "x64"), own.options].join(" ").trim(),
      flags: {
        ...own.flags,
        CC: `${prefix}-gcc-posix`,
        CXX: `${prefix}-g++-posix`,
        CFLAGS: throttling.map((each) => `-D${each}`).join(" "),
      },
      definitions: {
        CMAKE_SYSTEM_NAME: "Windows",
        CMAKE_SYSTEM_PROCESSOR: "AMD64",
        CMAKE_RC_COMPILER: `${prefix}-windres`,
        CMAKE_AR: `/usr/bin/${prefix}-ar`,
        CMAKE_RANLIB: `/usr/bin/${prefix}-ranlib`,
      },
    };
    const build = await prepareBuild(plan, say, progress.line);
    await configure(build);
    return await buildAddon(build);
  } finally {
    progress.end();
  }
}

const started = Date.now();
const addon = await compile();
const text = execFileSync(`${prefix}-objdump`, ["--private-headers", addon], {
  encoding: "utf8",
  maxBuffer: 2 ** 28,
});
const tables = exportsAndImports(text);
const faults = unexpected(tables);
say(`${addon}: ${(statSync(addon).size / 1e6).toFixed(1)} MB in ${duration(Date.now() - started)}`);
const libraries = { name: "libraries", holds: faults.length === 0, shown: tables.libraries.join(", ") };
const wine = hasWine();
if (!wine) say("Wine is not installed, so nothing is run");
const checks = [libraries, ...(wine ? await underWine(addon) : [])];
for (const fault of faults) console.log(fault);
for (const { name, holds, shown } of checks) console.log(`${holds ? "holds" : "FAILED"}  ${name}: ${shown}`);
const failed = checks.filter(({ holds }) => !holds).length;
console.log(`${checks.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
