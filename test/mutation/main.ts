/**
 * Puts small faults into the sources one at a time and runs tests on each: `npm run mutate -- FOLDER --tests PATHPART`.
 * Of those, only the files that reach the fault's place run, the quickest first and those that saw others in its file,
 * until a test fails.
 * What no test notices is named with its line. The sources themselves stay as they are: faults go into a copy.
 *   FOLDER         files or folders below the repository, such as src/router
 *   --tests PART   what to run, as `npm test -- PART` takes it; may be given several times
 *   --limit N      number of faults, chosen by --seed (default: 40)
 *   --seed N       another choice (default: 1)
 *   --at FILE:LINE all faults of that line, and no others; may be given several times
 *   --timeout S    seconds per test file without a fault (default: 120); with one, five times what it took counts as noticed
 *   --spend S      seconds of tests for each fault (default: until all have run)
 *   --least P      fails below this percentage of noticed faults
 *   --record       stores the result for docs/contributing/verification/tables.md, replacing an earlier one of the same folders
 *   --planted      the faults of planted.ts instead, each with the tests that it names; `--planted PART` those that say it
 */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { readResults, recordResults, type Table } from "../../scripts/docs/verification.js";
import { findTests } from "../support/find-tests.js";
import { TestRandom } from "../support/random.js";
import { runFile } from "../support/run-file.js";
import { asPlain, checkoutFiles, root, SourceCopy } from "./copy.js";
import { apply, type Mutant, mutantsOf } from "./mutants.js";
import { planted } from "./planted.js";
import { Reached } from "./reached.js";

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      tests: { type: "string", multiple: true },
      limit: { type: "string", default: "40" },
      at: { type: "string", multiple: true },
      seed: { type: "string", default: "1" },
      timeout: { type: "string", default: "120" },
      spend: { type: "string", default: "Infinity" },
      least: { type: "string", default: "0" },
      record: { type: "boolean", default: false },
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
  const copy = await SourceCopy.make();
  const files = findTests(testsOf(copy), tests);
  const sound = await copy.withLastWords(() => runWithoutFault(copy, files, Number(values.timeout) * 1000));
  const budget = Number(values.spend);
  const seenBy = new Map<string, number>();
  let noticed = 0;
  let refused = 0;
  for (const { file, mutant } of chosen) {
    const source = copy.read(file);
    if (!(await copy.write(file, apply(source, mutant)))) {
      refused++; // no program any more
      continue;
    }
    const hits = (test: string) => seenBy.get(`${file} ${test}`) ?? 0;
    const reaching = sound
      .filter(({ reached }) => reached.has(join(copy.folder, file), source, mutant.at))
      .sort((a, b) => a.seconds / (1 + 4 * hits(a.test)) - b.seconds / (1 + 4 * hits(b.test)));
    const affordable = reaching.slice(0, countWithin(reaching, budget));
    const by = await firstToFail(affordable);
    await copy.write(file, source);
    if (by !== undefined) {
      noticed++;
      seenBy.set(`${file} ${by}`, hits(by) + 1);
    }
    const of = affordable.length < reaching.length ? ` of ${reaching.length}` : "";
    const told = by === undefined ? `seen by ${affordable.length}${of} files` : relative(testsOf(copy), by);
    console.log(
      `${by === undefined ? "UNNOTICED" : "noticed  "} ${describe(file, source, mutant)}  (${told})`,
    );
  }
  const tried = chosen.length - refused;
  const share = (100 * noticed) / Math.max(1, tried);
  console.log(`\n${noticed} of ${tried} noticed (${share.toFixed(0)} %)`);
  if (values.record) recordRound(positionals, values.seed, noticed, tried);
  if (tried === 0 || share < Number(values.least)) process.exitCode = 1;
}

function recordRound(folders: readonly string[], seed: string, noticed: number, tried: number): void {
  const { tables } = readResults("mutation");
  const [table] = tables as [Table];
  const sources = folders.map((folder) => `\`${folder}\``).join(", ");
  const today = new Date().toISOString().slice(0, 10);
  const round = [today, sources, seed, String(noticed), String(tried), "", ""];
  const others = table.rows.filter(([, known]) => known !== sources);
  const rows = [...others, round].sort(([, a = ""], [, b = ""]) => (a < b ? -1 : 1));
  recordResults("mutation", { summary: "", tables: [{ ...table, rows }] });
}

/** Plants the faults of the list whose descriptions hold one of some words; all must be noticed. */
async function tryPlanted(words: readonly string[], timeoutMs: number): Promise<void> {
  const chosen = planted.filter(
    ({ what }) => words.length === 0 || words.some((word) => what.includes(word)),
  );
  const copy = await SourceCopy.make();
  const sound = new Map<string, Runnable>();
  let unnoticed = 0;
  for (const { what, file, from, to, tests } of chosen) {
    const source = copy.read(file);
    if (source.split(from).length !== 2) throw new Error(`${file} does not say once: ${from}`);
    const found: Runnable[] = [];
    for (const test of findTests(testsOf(copy), [...tests])) {
      const runnable = sound.get(test) ?? (await runSound(test, timeoutMs));
      sound.set(test, runnable);
      found.push(runnable);
    }
    const program = await copy.write(
      file,
      source.replace(from, () => to),
    );
    const by = program ? await firstToFail(found.sort((a, b) => a.seconds - b.seconds)) : undefined;
    await copy.write(file, source);
    if (by === undefined) unnoticed++;
    const told = !program ? "NO PROGRAM" : by === undefined ? "UNNOTICED " : `noticed   `;
    console.log(`${told} ${what}  (${by === undefined ? file : relative(testsOf(copy), by)})`);
  }
  console.log(`\n${chosen.length - unnoticed} of ${chosen.length} noticed`);
  if (unnoticed > 0 || chosen.length === 0) process.exitCode = 1;
}

function testsOf(copy: SourceCopy): string {
  return join(copy.folder, "test");
}

/** A test file that passes without a fault, how it is run and how long it takes. */
interface Runnable {
  test: string;
  /** Whether it runs as plain JavaScript; some name files of TypeScript, and need its loader. */
  plain: boolean;
  seconds: number;
  /** Whether its output shows by the runner's own sign that a test failed. */
  signs: boolean;
}

/** One of the chosen tests, and which places of the sources it reaches. */
interface SoundFile extends Runnable {
  reached: Reached;
}

async function runSound(test: string, timeoutMs: number): Promise<Runnable> {
  const plain = await runFile(asPlain(test), timeoutMs, { node: [] });
  const { seconds, failed, output } = plain.failed === 0 ? plain : await runFile(test, timeoutMs);
  if (failed > 0) throw new Error(`Without any fault the tests fail:\n${output}`);
  return { test, plain: plain.failed === 0, seconds, signs: !output.includes("✘") };
}

/** Runs every file once and returns the time of each. */
async function runWithoutFault(copy: SourceCopy, tests: string[], timeoutMs: number): Promise<SoundFile[]> {
  const sound: SoundFile[] = [];
  for (const test of tests) {
    const folder = join(copy.folder, ".coverage");
    mkdirSync(folder);
    process.env.NODE_V8_COVERAGE = folder;
    const runnable = await runSound(test, timeoutMs);
    delete process.env.NODE_V8_COVERAGE;
    sound.push({ ...runnable, reached: new Reached(folder) });
    rmSync(folder, { recursive: true });
    const how = runnable.plain ? "" : ", with a compiler";
    console.log(`  ${relative(testsOf(copy), test)} takes ${runnable.seconds.toFixed(1)} s${how}`);
  }
  return sound;
}

/** The number of files that fit into a number of seconds, at least one. */
function countWithin(files: readonly Runnable[], budget: number): number {
  let [count, spent] = [0, 0];
  for (const { seconds } of files) {
    spent += seconds;
    if (count > 0 && spent > budget) break;
    count++;
  }
  return count;
}

/** Runs test files until one fails, and names it. One that takes five times as long as without a fault hangs. */
async function firstToFail(tests: readonly Runnable[]): Promise<string | undefined> {
  for (const { test, plain, seconds, signs } of tests) {
    const { failed } = await runFile(plain ? asPlain(test) : test, 1000 * (20 + 5 * seconds), {
      ...(plain ? { node: [] } : {}),
      untilFailure: signs,
    });
    if (failed > 0) return test;
  }
  return undefined;
}

/** The TypeScript files of this checkout at or below some paths. */
function filesBelow(paths: readonly string[]): string[] {
  return checkoutFiles().filter(
    (file) =>
      file.endsWith(".ts") &&
      paths.some((path) => file === path || file.startsWith(`${path.replace(/\/+$/, "")}/`)),
  );
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

function lineOf(file: string, { at }: Mutant): number {
  return readFileSync(join(root, file), "utf8").slice(0, at).split("\n").length;
}

function describe(file: string, source: string, { at, from, to }: Mutant): string {
  const line = source.slice(0, at).split("\n").length;
  const short = (text: string) => text.trim().replace(/\s+/g, " ").slice(0, 60);
  return `${file}:${line}  ${short(from)} → ${short(to) || "nothing"}`;
}

await main();
