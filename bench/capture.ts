/**
 * What capturing costs: forward passes that read block outputs over a pass that reads nothing, of the same tokens in the
 * same process. Some in a context of the benchmark's own, as an inspect has it, some of the resident model of a server,
 * as `POST /lab/activations` asks for them. Each round runs every kind once, in random order, and compares it with the
 * round's plain pass. All end with the next token's top 5; norms and the way to JavaScript are part of a capture.
 */
import { Model } from "../src/native/index.js";
import { startServer, type TestServer } from "../test/inference/support/serving.js";
import { TestRandom } from "../test/support/random.js";
import { isClear, median, quartiles, type Row, row } from "./figures.js";
import { layerSets } from "./layer-sets.js";
import { demoModel, halfBillionModel, type ModelSet, modelsForCard } from "./models/sets.js";
import type { Report } from "./report.js";
import { benchResident } from "./resident.js";
import { textOf } from "./text-of.js";

const lengths = [16, 128, 256];

export interface CaptureBench {
  label: string;
  path: string;
  /** Of each kind of pass at each length, at most: they end earlier where every figure is clear of its goal. */
  rounds: number;
  /** After which no round begins that is not needed to have 12, of all lengths together. */
  seconds: number;
  /** Chats that captures run beside. */
  chats: number;
  /** The allowed cost of a capture of this many tokens over a plain pass. */
  goal: (tokens: number) => number;
}

export async function benchCapture({
  quick,
  rounds,
  models,
  report,
}: {
  quick: boolean;
  rounds?: number;
  models: ModelSet;
  report: Report;
}): Promise<Row[]> {
  const count = rounds ?? (quick ? 5 : 60);
  const benches = models === "usual" ? await usual(count, quick) : await onCard(models, count, quick);
  const rows: Row[] = [];
  for (const bench of benches) {
    const server = await startServer({ model: bench.path, parallel: 2, ctxSize: 512, embeddings: false });
    const model = await Model.open(bench.path);
    try {
      for (const length of lengths) {
        report.stage(`${bench.label}, passes of ${length} tokens`);
        rows.push(...report.rows(...(await benchLength(bench, server, model, length))));
      }
      report.stage(`${bench.label}, resident captures`);
      rows.push(...report.rows(...(await benchResident(bench, server, model))));
    } finally {
      await model.close();
      await server.close();
    }
  }
  return rows;
}

async function usual(count: number, quick: boolean): Promise<CaptureBench[]> {
  return [
    {
      label: "demo model",
      path: demoModel,
      rounds: count * (quick ? 1 : 4),
      seconds: 60,
      chats: quick ? 1 : 7,
      goal: () => 1.05,
    },
    {
      ...(await halfBillionModel()),
      ...{ rounds: count, seconds: 300, chats: quick ? 1 : 3 },
      // A hundredth of so short a pass is less than one pass differs from the next.
      goal: (tokens) => (tokens < 128 ? 1.03 : 1.01),
    },
  ];
}

async function onCard(set: "card" | "small", count: number, quick: boolean): Promise<CaptureBench[]> {
  const settings = { rounds: count, seconds: 90, chats: quick ? 1 : 3, goal: () => 1.02 };
  return (await modelsForCard(set)).map((model) => ({ ...model, ...settings }));
}

async function benchLength(
  { label, rounds, seconds, goal }: CaptureBench,
  { service: { engine } }: TestServer,
  model: Model,
  length: number,
): Promise<Row[]> {
  const { nLayer } = model.info;
  const context = await model.createContext({ nCtx: 256, nBatch: 256 });
  const prompt = await textOf(model, length);
  const pass = (layers: number[], end: { nextTopK: number } | { earlyExit: true } = { nextTopK: 5 }) =>
    timed(async () => {
      const tokens = await model.tokenize(prompt);
      await context.reset();
      await context.advance({ tokens, layers, keepStates: false, ...end });
    });
  const capture = (layers: number[]) =>
    timed(() => engine.capture({ prompt, layers, maxTokens: 256, nextTop: 5 }));

  const plain = () => pass([]);
  const kinds: Kinds = {};
  for (const [what, layers] of Object.entries(layerSets(nLayer))) {
    kinds[what] = () => pass(layers);
    kinds[`resident, ${what}`] = () => capture(layers);
  }
  // A plain pass computes the last block for the last token only: there more is computed, not just read.
  const everyRow = "every row of the last block";
  const early = Math.min(5, nLayer - 2);
  const leaving = `leaving behind block ${early} of ${nLayer}`;
  const unlimited: Kinds = {
    [everyRow]: () => pass([nLayer - 1]),
    [leaving]: () => pass([early], { earlyExit: true }),
  };
  for (const run of Object.values(kinds)) for (let i = 0; i < 3; i++) await run();

  const random = new TestRandom(length);
  const share = length / lengths.reduce((sum, each) => sum + each, 0);
  const limitedRatios = await overPlain(kinds, plain, random, {
    rounds,
    seconds: share * seconds,
    goal: goal(length),
  });
  const otherRatios = await overPlain(unlimited, plain, random, { rounds: Math.min(rounds, 10) });
  await context.close();
  const describe = (kind: string, { ratios, plainMs }: Ratios, most?: number) => ({
    ...row(
      `${label}, ${length} tokens, ${kind}: over a plain pass of ${plainMs.toFixed(1)} ms`,
      ratios,
      "x",
      most === undefined ? {} : { most },
    ),
    spread: quartiles(ratios),
  });
  return [
    ...Object.entries(limitedRatios).map(([kind, ratios]) => describe(kind, ratios, goal(length))),
    ...Object.entries(otherRatios).map(([kind, ratios]) => describe(kind, ratios)),
  ];
}

type Kinds = Record<string, () => Promise<number>>;

interface Ratios {
  ratios: number[];
  plainMs: number;
}

/** Fewer rounds say nothing about a goal. */
const leastRounds = 12;

/**
 * Runs a plain pass and one of every kind in each round, in random order: each kind's time over the plain one's. With a
 * goal it ends as soon as every median is clear of it, or the time is over.
 */
async function overPlain(
  kinds: Kinds,
  plain: () => Promise<number>,
  random: TestRandom,
  { rounds, seconds = 0, goal }: { rounds: number; seconds?: number; goal?: number },
): Promise<Record<string, Ratios>> {
  const runs = [plain, ...Object.values(kinds)];
  const times: number[][] = runs.map(() => []);
  const ratiosOf = (own: number[]) => own.map((time, round) => time / (times[0]?.[round] as number));
  const end = performance.now() + 1000 * seconds;
  const wanted = (round: number) => {
    if (round >= rounds) return false;
    if (goal === undefined || round < leastRounds) return true;
    return performance.now() < end && !times.slice(1).every((own) => isClear(ratiosOf(own), goal));
  };
  for (let round = 0; wanted(round); round++) {
    const left = runs.map((_, index) => index);
    while (left.length > 0) {
      const [next] = left.splice(random.below(left.length), 1) as [number];
      times[next]?.push(await (runs[next] as () => Promise<number>)());
    }
  }
  const [bare, ...captured] = times as [number[], ...number[][]];
  return Object.fromEntries(
    Object.keys(kinds).map((kind, index) => [
      kind,
      { ratios: ratiosOf(captured[index] as number[]), plainMs: median(bare) },
    ]),
  );
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
