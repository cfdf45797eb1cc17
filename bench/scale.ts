/**
 * Extractions in parts: how the speed grows with workers of one thread each, and what parts, starts and the submitter cost.
 * All rounds extract the same texts, one number of workers after another, so ratios are of one run.
 */
import { mkdir, mkdtemp, rm, stat, truncate, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { indexName } from "../src/lab/extraction/plan.js";
import { engineOf, follow, planned, progressOf, start } from "../src/submit/index.js";
import { partsFolder } from "../src/submit/submission.js";
import { TestRandom } from "../test/support/random.js";
import { type Row, row } from "./figures.js";
import { type Shape, writeRandomModel } from "./models/random-model.js";
import type { Report } from "./report.js";

/** Below 40 MB of weights, a model is computed by one thread; this one has 28 MB in Q8_0. */
const shape: Shape = { blocks: 8, hidden: 512, feedForward: 1408, heads: 8, kvHeads: 2, vocabulary: 4096 };
const parts = 8;
const textBytes = 128;
/** How often a round looks at the parts; a person's `--submit local` does so every second. */
const intervalMs = 25;
const usualMs = 1000;

const program = [process.execPath, fileURLToPath(new URL("../bin/tapline.js", import.meta.url))];

export async function benchScale(options: {
  quick: boolean;
  rounds?: number;
  report: Report;
}): Promise<Row[]> {
  const { quick, rounds = quick ? 1 : 5, report } = options;
  const folder = await mkdtemp(join(tmpdir(), "tapline-scale-"));
  const home = process.env.TAPLINE_HOME;
  process.env.TAPLINE_HOME = join(folder, "home");
  await mkdir(process.env.TAPLINE_HOME);
  try {
    const setting = await prepare(folder, quick ? 80 : 480);
    return [
      ...report.rows(...(await benchWorkers(setting, rounds, report))),
      ...report.rows(...(await benchParts(setting, rounds, report))),
      ...report.rows(...(await benchLooks(folder, rounds, report))),
    ];
  } finally {
    if (home === undefined) delete process.env.TAPLINE_HOME;
    else process.env.TAPLINE_HOME = home;
    await rm(folder, { recursive: true, force: true });
  }
}

interface Setting {
  folder: string;
  settings: Record<string, unknown>;
}

async function prepare(folder: string, texts: number): Promise<Setting> {
  const model = join(folder, "model.gguf");
  await writeRandomModel(model, "q8_0", shape);
  const random = new TestRandom(3);
  const text = () =>
    Array.from({ length: textBytes }, () => String.fromCharCode(97 + random.below(26))).join("");
  const data = join(folder, "texts.txt");
  await writeFile(data, Array.from({ length: texts }, text).join("\n"));
  return { folder, settings: { model, data, layers: [5], shard_tokens: 4096 } };
}

interface Submitted {
  /** From the start until all parts are complete. */
  seconds: number;
  /** Until the first part has counted its texts: its process has started and the model is loaded. */
  started: number;
  merging: number;
  tokens: number;
  /** Processor time of this process per look at the parts, in milliseconds. */
  look: number;
}

let made = 0;

/** A submission from its start to the merged files. */
async function submitted(
  { folder, settings }: Setting,
  { workers, count, command = program }: { workers: number; count: number; command?: readonly string[] },
): Promise<Submitted> {
  const out = join(folder, `rows-${made++}`);
  const place = { engine: "local" as const, out, parts: count, workers, engineOptions: [] };
  const home = process.env.TAPLINE_HOME as string;
  const began = performance.now();
  const { submission } = await start(home, planned(settings, place), command);
  const first = firstFile(join(partsFolder(submission), indexName([0, count])), began);
  let [complete, tokens, looks] = [0, 0, 0];
  const cpu = process.cpuUsage();
  let used = 0;
  await follow(submission, {
    ...{ home, engine: engineOf(submission, command), intervalMs, signal: AbortSignal.timeout(3_600_000) },
    onProgress: (progress) => {
      looks++;
      if (progress.complete !== count || complete > 0) return;
      complete = (performance.now() - began) / 1000;
      tokens = progress.done;
      const { user, system } = process.cpuUsage(cpu);
      used = (user + system) / 1000;
    },
    onRestart: (again) => {
      throw new Error(`Parts ${again.join(", ")} ended early; see ${partsFolder(submission)}.`);
    },
    ...{ onCopy: () => {}, onMerge: () => {} },
  });
  const ended = (performance.now() - began) / 1000;
  await rm(out, { recursive: true });
  return { seconds: complete, started: await first, merging: ended - complete, tokens, look: used / looks };
}

/** Seconds until a file exists. */
async function firstFile(path: string, began: number): Promise<number> {
  while (!(await stat(path).catch(() => undefined))) await sleep(5);
  return (performance.now() - began) / 1000;
}

async function benchWorkers(setting: Setting, rounds: number, report: Report): Promise<Row[]> {
  const cores = availableParallelism();
  const numbers = [1, 2, 4];
  const found = new Map<number, Submitted[]>(numbers.map((workers) => [workers, []]));
  for (let round = 0; round < rounds; round++) {
    for (const workers of numbers) {
      report.stage(`round ${round + 1} of ${rounds}, ${workers} ${workers === 1 ? "worker" : "workers"}`);
      // Two and more have their shares of the cores from the engine; one alone would use a second core for its files.
      const command = workers === 1 ? ["taskset", "--cpu-list", "0", ...program] : program;
      found.get(workers)?.push(await submitted(setting, { workers, count: parts, command }));
    }
  }
  const rates = (workers: number) =>
    (found.get(workers) as Submitted[]).map(({ tokens, seconds }) => tokens / seconds);
  const one = rates(1);
  const all = [...found.values()].flat();
  return [
    ...numbers.map((workers) =>
      row(`${workers} workers of one thread, ${parts} parts`, rates(workers), "tokens/s"),
    ),
    ...numbers.slice(1).map((workers) => {
      const busy = Math.min(workers, cores);
      return row(
        `${workers} workers on ${cores} cores, as a share of ${busy} times one worker`,
        rates(workers).map((rate, round) => rate / (busy * (one[round] as number))),
        "",
        workers <= cores ? { least: 0.95 } : {},
      );
    }),
    row(
      "from the start to the first part's count of texts",
      (found.get(1) as Submitted[]).map(({ started }) => started),
      "s",
    ),
    row(
      "the submitter's processor time, at one look per second",
      all.map(({ look }) => look / usualMs),
      "of a core",
      { most: 0.01 },
    ),
    row(
      "merging, as a share of one worker's time",
      (found.get(1) as Submitted[]).map(({ merging, seconds }) => merging / seconds),
      "",
    ),
  ];
}

/** The same texts in more parts, by one worker: what each part costs besides its texts. */
async function benchParts(setting: Setting, rounds: number, report: Report): Promise<Row[]> {
  const [few, many] = [2, 10];
  const command = ["taskset", "--cpu-list", "0", ...program];
  const overhead: number[] = [];
  for (let round = 0; round < rounds; round++) {
    report.stage(`round ${round + 1} of ${rounds}, ${few} and ${many} parts`);
    const one = await submitted(setting, { workers: 1, count: few, command });
    const other = await submitted(setting, { workers: 1, count: many, command });
    overhead.push((other.seconds - one.seconds) / (many - few));
  }
  return [row("each part besides its texts, on one core", overhead, "s")];
}

/** A look at as many parts as a large cluster has: `tapline jobs --submitted`, and every look while following. */
async function benchLooks(folder: string, rounds: number, report: Report): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [count, files] of [
    [64, 10],
    [1000, 10],
  ] as const) {
    report.stage(`looks at ${count} parts of ${files} files`);
    const submission = { out: join(folder, `looks-${count}`), parts: count };
    await mkdir(partsFolder(submission), { recursive: true });
    for (let part = 0; part < count; part++) {
      const shards = Array.from({ length: files }, (_, n) => ({
        ...{ file: `shard-${part}-of-${count}-${String(n).padStart(5, "0")}.safetensors`, bytes: 4096 },
        ...{ texts: 10, tokens: 1000, rows: 1000 },
      }));
      for (const { file, bytes } of shards) {
        await writeFile(join(partsFolder(submission), file), "");
        await truncate(join(partsFolder(submission), file), bytes);
      }
      const index = { complete: true, tokens: 1000 * files, shards };
      await writeFile(join(partsFolder(submission), indexName([part, count])), JSON.stringify(index));
    }
    const times: number[] = [];
    for (let look = 0; look < 5 * rounds; look++) {
      const began = performance.now();
      const { complete } = await progressOf(submission);
      times.push(performance.now() - began);
      if (complete !== count) throw new Error(`${complete} of ${count} parts are complete.`);
    }
    rows.push(row(`one look at ${count} parts of ${files} files, on a local disk`, times, "ms"));
  }
  return rows;
}
