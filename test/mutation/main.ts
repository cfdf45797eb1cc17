/**
 * Puts small faults into the sources one at a time and runs tests on each: `npm run mutate -- FOLDER --tests PATHPART`.
 * Of those, only the files that reach the fault's place run, the quickest first, until one fails.
 * What no test notices is named with its line. The sources themselves stay as they are: faults go into a copy.
 *   FOLDER         files or folders below the repository, such as src/router
 *   --tests PART   what to run, as `npm test -- PART` takes it; may be given several times
 *   --limit N      so many faults, chosen by --seed (default: 40)
 *   --seed N       another choice (default: 1)
 *   --at FILE:LINE all faults of that line, and no others; may be given several times
 *   --timeout S    seconds per test file without a fault (default: 120); with one, five times what it took counts as noticed
 *   --least P      fails below so many percent noticed
 *   --planted      the faults of planted.ts instead, each with the tests that it names; `--planted PART` those that say it
 */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findTests } from "../support/find-tests.js";
import { TestRandom } from "../support/random.js";
import { runFile } from "../support/run-file.js";
import { apply, type Mutant, mutantsOf } from "./mutants.js";
import { planted } from "./planted.js";
import { Reached } from "./reached.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      tests: { type: "string", multiple: true },
      limit: { type: "string", default: "40" },
      at: { type: "string", multiple: true },
      seed: { type: "string", default: "1" },
      timeout: { type: "string", default: "120" },
      least: { type: "string", default: "0" },
      planted: { type: "boolean", default: false },
    },
  });
  if (values.planted) return tryPlanted(positionals, Number(values.timeout) * 1000);
  const { tests = [] } = values;
  if (positionals.length === 0 || tests.length === 0) {
    throw new Error("Name a folder and its tests: npm run mutate -- src/router --tests router/");
  }
  const all = filesBelow(positionals).flatMap((file) =>
    mutantsOf(readFileSync(join(root, file), "utf8")).map((mutant) => ({ file, mutant })),
  );
  const chosen =
    values.at === undefined
      ? choose(all, Number(values.limit), Number(values.seed))
      : all.filter(({ file, mutant }) => values.at?.includes(`${file}:${lineOf(file, mutant)}`));
  console.log(`${all.length} faults can be put into ${positionals.join(", ")}; ${chosen.length} are tried.`);
  const copy = makeCopy();
  const files = findTests(join(copy, "test"), tests);
  const sound = await runWithoutFault(copy, files, Number(values.timeout) * 1000);
  let noticed = 0;
  let refused = 0;
  for (const { file, mutant } of chosen) {
    const source = readFileSync(join(copy, file), "utf8");
    writeFileSync(join(copy, file), apply(source, mutant));
    const reaching = sound.filter(
      ({ reached }) => !file.endsWith(".ts") || reached.has(join(copy, file), source, mutant.at),
    );
    const { by, output } = await firstToFail(reaching);
    writeFileSync(join(copy, file), source);
    if (/Transform failed|SyntaxError/.test(output)) {
      refused++; // no program any more
      continue;
    }
    if (by !== undefined) noticed++;
    const told = by === undefined ? `seen by ${reaching.length} files` : relative(join(copy, "test"), by);
    console.log(`${by === undefined ? "UNNOTICED" : "noticed  "} ${tell(file, source, mutant)}  (${told})`);
  }
  const tried = chosen.length - refused;
  const share = (100 * noticed) / Math.max(1, tried);
  console.log(`\n${noticed} of ${tried} noticed (${share.toFixed(0)} %)`);
  if (tried === 0 || share < Number(values.least)) process.exitCode = 1;
}

/** Plants the faults of the list whose descriptions hold one of some words; all must be noticed. */
async function tryPlanted(words: readonly string[], timeoutMs: number): Promise<void> {
  const chosen = planted.filter(
    ({ what }) => words.length === 0 || words.some((word) => what.includes(word)),
  );
  const copy = makeCopy();
  const sound = new Map<string, number>();
  let unnoticed = 0;
  for (const { what, file, from, to, tests } of chosen) {
    const path = join(copy, file);
    const source = readFileSync(path, "utf8");
    if (source.split(from).length !== 2) throw new Error(`${file} does not say once: ${from}`);
    const found = findTests(join(copy, "test"), [...tests]);
    for (const test of found) {
      if (sound.has(test)) continue;
      const { seconds, failed, output } = await runFile(test, timeoutMs);
      if (failed > 0) throw new Error(`Without any fault the tests fail:\n${output}`);
      sound.set(test, seconds);
    }
    writeFileSync(
      path,
      source.replace(from, () => to),
    );
    const { by, output } = await firstToFail(
      found
        .map((test) => ({ test, seconds: sound.get(test) as number }))
        .sort((a, b) => a.seconds - b.seconds),
    );
    writeFileSync(path, source);
    const broken = by !== undefined && /Transform failed|SyntaxError/.test(output);
    if (by === undefined || broken) unnoticed++;
    const told = broken ? "NO PROGRAM" : by === undefined ? "UNNOTICED " : `noticed   `;
    console.log(`${told} ${what}  (${by === undefined ? file : relative(join(copy, "test"), by)})`);
  }
  console.log(`\n${chosen.length - unnoticed} of ${chosen.length} noticed`);
  if (unnoticed > 0 || chosen.length === 0) process.exitCode = 1;
}

/** A copy of the sources that faults go into; this process goes there, and takes it away at its end. */
function makeCopy(): string {
  const copy = mkdtempSync(join(tmpdir(), "tapline-mutation-"));
  process.on("exit", () => rmSync(copy, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
  copyTo(copy);
  process.chdir(copy);
  process.env.TAPLINE_TEST_BUILT = "0"; // from the sources, which have the fault
  return copy;
}

/** A test file, how long it takes, and which places of the sources it reaches. */
interface SoundFile {
  test: string;
  seconds: number;
  reached: Reached;
}

/** Runs every file once; the quickest first. */
async function runWithoutFault(copy: string, tests: string[], timeoutMs: number): Promise<SoundFile[]> {
  const sound: SoundFile[] = [];
  for (const test of tests) {
    const folder = join(copy, ".coverage");
    mkdirSync(folder);
    process.env.NODE_V8_COVERAGE = folder;
    const { seconds, failed, output } = await runFile(test, timeoutMs);
    delete process.env.NODE_V8_COVERAGE;
    if (failed > 0) throw new Error(`Without any fault the tests fail:\n${output}`);
    sound.push({ test, seconds, reached: new Reached(folder) });
    rmSync(folder, { recursive: true });
  }
  return sound.sort((a, b) => a.seconds - b.seconds);
}

/** Runs test files until one fails. One that takes five times as long as without a fault hangs. */
async function firstToFail(
  tests: readonly Pick<SoundFile, "test" | "seconds">[],
): Promise<{ by?: string; output: string }> {
  for (const { test, seconds } of tests) {
    const { failed, output } = await runFile(test, 1000 * (20 + 5 * seconds));
    if (failed > 0) return { by: test, output };
  }
  return { output: "" };
}

/** The TypeScript files of this checkout at or below some paths. */
function filesBelow(paths: readonly string[]): string[] {
  return trackedFiles().filter(
    (file) =>
      file.endsWith(".ts") &&
      paths.some((path) => file === path || file.startsWith(`${path.replace(/\/+$/, "")}/`)),
  );
}

function trackedFiles(): string[] {
  return execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1e8,
  })
    .split("\n")
    .filter((file) => file !== "" && existsSync(join(root, file)));
}

/** So many of them, by chance that can be repeated, in their order. */
function choose<T>(all: readonly T[], count: number, seed: number): T[] {
  const random = new TestRandom(seed);
  return all
    .map((value, place) => ({ value, place, lot: random.uniform() }))
    .sort((a, b) => a.lot - b.lot)
    .slice(0, count)
    .sort((a, b) => a.place - b.place)
    .map(({ value }) => value);
}

function copyTo(folder: string): void {
  for (const file of trackedFiles()) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    copyFileSync(join(root, file), join(folder, file));
  }
  for (const name of ["node_modules", ".build"]) symlinkSync(join(root, name), join(folder, name));
}

function lineOf(file: string, { at }: Mutant): number {
  return readFileSync(join(root, file), "utf8").slice(0, at).split("\n").length;
}

function tell(file: string, source: string, { at, from, to }: Mutant): string {
  const line = source.slice(0, at).split("\n").length;
  const short = (text: string) => text.trim().replace(/\s+/g, " ").slice(0, 60);
  return `${file}:${line}  ${short(from)} → ${short(to) || "nothing"}`;
}

await main();
