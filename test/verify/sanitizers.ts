/**
 * The addon's own code under sanitizers, with Node loaded around it: `npm run verify:sanitizers`. The programs that run,
 * and the omissions with their reasons, are in docs/contributing/verification.md. Fails on any report, in any process.
 *   --only NAME      one of memory, threads
 *   --jobs N         test files at the same time (default 1)
 *   --tests PATTERN  these tests instead; may be repeated
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
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
  /** What sanitizers/planted.cpp does wrong, and how a report of it reads. */
  planted: Record<string, RegExp>;
  tests: string[];
  /** @param log where reports go, one file a process */
  options(log: string): Record<string, string>;
}

const runs: Run[] = [
  {
    name: "memory",
    sanitize: "address,undefined",
    runtime: "libasan.so",
    planted: { overflow: /heap-buffer-overflow/, shift: /shift exponent 40 is too large/ },
    tests: ["native/", "dictionaries/layouts", "train/", "engine/", "inference/live"],
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
    planted: { race: /data race/ },
    tests: ["engine/", "native/", "train/probe", "train/sae", "inference/live"],
    options: (log) => ({
      TSAN_OPTIONS: `suppressions=${here("./sanitizers/threads.txt")}:log_path=${log}:ignore_noninstrumented_modules=1`,
    }),
  },
];

/** @returns each process's report */
async function reportsIn(folder: string): Promise<string[]> {
  const files = await readdir(folder);
  return Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
}

/** Has every kind of fault done in a Node that is started just so, and reported. */
async function seesFaults(
  { name, sanitize, planted }: Run,
  env: NodeJS.ProcessEnv,
  folder: string,
): Promise<boolean> {
  const library = join(await mkdtemp(join(folder, "..", "tapline-planted-")), "planted.so");
  const source = here("./sanitizers/planted.cpp");
  const linking = ["-pthread", `-fsanitize=${sanitize}`, "-static-libubsan", "-Wl,-Bsymbolic"]; // as the addon
  execFileSync("g++", ["-shared", "-fPIC", "-g", "-O0", ...linking, source, "-o", library], {
    stdio: "inherit",
  });
  let seen = true;
  for (const [fault, words] of Object.entries(planted)) {
    spawnSync(process.execPath, ["-e", "process.dlopen({ exports: {} }, process.argv[1])", library], {
      env: { ...env, PLANTED: fault },
      stdio: "ignore",
    });
    const reports = await reportsIn(folder);
    const found = reports.some((report) => words.test(report));
    console.log(`=== ${name}: a planted fault (${fault}) is ${found ? "reported" : "NOT REPORTED"}`);
    seen &&= found;
    await Promise.all((await readdir(folder)).map((file) => rm(join(folder, file))));
  }
  await rm(join(library, ".."), { recursive: true });
  return seen;
}

async function runOne(run: Run, tests: readonly string[], jobs: string): Promise<boolean> {
  const { name, sanitize, runtime, options } = run;
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
    if (!(await seesFaults(run, env, folder))) return false;
    // The runner itself needs no sanitizer; its tests inherit them.
    const args = ["--import", "tsx", here("../run.ts"), ...tests, "--timeout", "1800", "--jobs", jobs];
    const child = spawn(process.execPath, args, { stdio: "inherit", env });
    const [code] = await once(child, "close");
    const reports = await reportsIn(folder);
    for (const report of reports.slice(0, 5)) console.log(`\n--- ${name}\n${report.slice(0, 6000)}`);
    console.log(`=== ${name}: ${reports.length} processes reported something, tests ended with ${code}`);
    return reports.length === 0 && code === 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    jobs: { type: "string", default: "1" },
    tests: { type: "string", multiple: true },
  },
});
const chosen = runs.filter(({ name }) => values.only === undefined || values.only === name);
if (chosen.length === 0) {
  console.error(`--only takes ${runs.map(({ name }) => name).join(" or ")}, got ${values.only}.`);
  process.exitCode = 2;
}
for (const run of chosen) {
  if (!(await runOne(run, values.tests ?? run.tests, values.jobs))) process.exitCode = 1;
}
