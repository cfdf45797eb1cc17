/**
 * The addon's own code under sanitizers, with Node loaded around it: `npm run verify:sanitizers`. What runs where, and
 * what is left out for what reason, stands in docs/verification.md. Fails on any report, in any process.
 *   --only NAME      one of memory, threads
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { makeAddon } from "../../scripts/build/addon.js";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

interface Run {
  name: string;
  sanitize: string;
  /** Loaded before Node, which has no sanitizer in it. */
  runtime: string;
  tests: string[];
  options: (log: string) => NodeJS.ProcessEnv;
}

const runs: Run[] = [
  {
    name: "memory",
    sanitize: "address,undefined",
    runtime: "libasan.so",
    tests: ["native/", "train/", "engine/"],
    options: (log) => ({
      // V8 leaves its garbage to the end of the process.
      ASAN_OPTIONS: `detect_leaks=0:log_path=${log}`,
      UBSAN_OPTIONS: `print_stacktrace=1:log_path=${log}`,
    }),
  },
  {
    name: "threads",
    sanitize: "thread",
    runtime: "libtsan.so",
    tests: ["engine/", "native/capture", "native/sweep", "native/edits", "train/"],
    options: (log) => ({
      TSAN_OPTIONS: `suppressions=${here("./sanitizers/threads.txt")}:log_path=${log}:exitcode=0`,
    }),
  },
];

/** @returns what the sanitizers reported, and whether the tests passed */
async function runOne({ name, sanitize, runtime, tests, options }: Run): Promise<boolean> {
  console.log(`\n=== ${name}: ${sanitize} over ${tests.join(" ")}`);
  const { addon } = await makeAddon((sentence) => console.log(`tapline: ${sentence}`), { sanitize });
  const library = execFileSync("gcc", [`-print-file-name=${runtime}`], { encoding: "utf8" }).trim();
  const folder = await mkdtemp(join(tmpdir(), "tapline-sanitizers-"));
  try {
    const env = {
      ...process.env,
      ...options(join(folder, "report")),
      LD_PRELOAD: library,
      TAPLINE_ADDON: addon,
      TAPLINE_SANITIZED: name,
    };
    const args = ["--import", "tsx", here("../run.ts"), ...tests, "--timeout", "900"];
    const child = spawn(process.execPath, args, { stdio: "inherit", env });
    const [code] = await once(child, "close");
    const reports = await readdir(folder);
    for (const file of reports.slice(0, 5)) {
      console.log(`\n--- ${file}\n${(await readFile(join(folder, file), "utf8")).slice(0, 6000)}`);
    }
    console.log(`=== ${name}: ${reports.length} processes reported something, tests ended with ${code}`);
    return reports.length === 0 && code === 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({ options: { only: { type: "string" } } });
const chosen = runs.filter(({ name }) => values.only === undefined || values.only === name);
if (chosen.length === 0) {
  console.error(`--only takes ${runs.map(({ name }) => name).join(" or ")}, got ${values.only}.`);
  process.exitCode = 2;
}
for (const one of chosen) {
  if (!(await runOne(one))) process.exitCode = 1;
}
