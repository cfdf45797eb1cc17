/**
 * The Lab's batched experiments against the plain way to compute the same and against llama.cpp's own tools, on
 * one model of real shape. Rounds alternate, so that a busy machine slows all sides; a row is the median of the
 * rounds' ratios.
 */
import { execFile } from "node:child_process";
import os from "node:os";
import { promisify } from "node:util";
import { type Context, Model } from "../src/native/index.js";
import { TestRandom } from "../test/support/random.js";
import { sequentialSweep } from "../test/support/sequential-sweep.js";
import { type Row, row } from "./figures.js";
import { llamaTools } from "./llama-tools.js";

const run = promisify(execFile);
const threads = os.availableParallelism();
const rounds = 3;
/** Of compare against llama-batched-bench: a program a round, so that other load on the machine meets either of them. */
const besideBatchedBench = 9;

const compare = { promptTokens: 50, strengths: 9, maxTokens: 32 };
const features = { examples: 512, tokens: 16, exitLayer: 5 };

/**
 * @param path a GGUF of the 0.5B shape
 * @param batchingGains whether decoding rows together has goals against decoding them alone. On F16 it has. On
 *   Q8_0 llama.cpp's x86 kernel for two and more rows reads the weights at a quarter of the speed of the one for a
 *   single row, so that nothing built on it can gain as much; llama-batched-bench's own speed is the bar there.
 */
export async function benchExperiments(
  path: string,
  { type, batchingGains }: { type: string; batchingGains: boolean },
): Promise<Row[]> {
  const tools = await llamaTools(["llama-bench", "llama-batched-bench"]);
  const model = await Model.open(path);
  try {
    const rows = [
      ...(await benchCompare(model, path, tools["llama-batched-bench"] as string, batchingGains)),
      ...(await benchFeatures(model, path, tools["llama-bench"] as string)),
    ];
    return rows.map((each) => ({ ...each, name: `${type}, ${each.name}` }));
  } finally {
    await model.close();
  }
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
}

function randomTokens(model: Model, random: TestRandom, count: number): Int32Array {
  return Int32Array.from({ length: count }, () => random.below(model.info.nVocab));
}

async function benchCompare(
  model: Model,
  path: string,
  batchedBench: string,
  batchingGains: boolean,
): Promise<Row[]> {
  const { promptTokens, strengths, maxTokens } = compare;
  const prompt = randomTokens(model, new TestRandom(1), promptTokens);
  const layer = Math.floor(model.info.nLayer / 2);
  const plans = Array.from({ length: strengths }, (_, i) => [{ layer, scale: 0.9 + 0.02 * (i + 0.5) }]);
  const sequences = 1 + strengths;
  const batched = await model.createContext({
    nCtx: promptTokens + sequences * maxTokens,
    nBatch: 256,
    maxSequences: sequences,
    threads,
  });
  const single = await model.createContext({ nCtx: promptTokens + maxTokens, nBatch: 128, threads });
  const ratios: Record<"batchedBench" | "sequential" | "recomputed" | "ours", number[]> = {
    batchedBench: [],
    sequential: [],
    recomputed: [],
    ours: [],
  };
  let before = await batchedBenchSeconds(batchedBench, path, sequences);
  for (let round = 0; round < besideBatchedBench; round++) {
    const ours = await seconds(async () => {
      const [trial] = await batched.sweep({ prompts: [prompt], plans, maxTokens });
      const shortest = Math.min(...(trial?.rows ?? []).map(({ continuation }) => continuation.length));
      if (shortest < maxTokens) throw new Error(`A continuation ended after ${shortest} tokens.`);
    });
    const after = await batchedBenchSeconds(batchedBench, path, sequences);
    ratios.ours.push(1000 * ours);
    ratios.batchedBench.push((before + after) / 2 / ours);
    before = after;
    if (round >= rounds) continue;
    // Nothing of one row helps the next, so one row of the plain way stands for all.
    const sequential = await seconds(() =>
      sequentialSweep(single, prompt, layer, plans[0] ?? [], 0, maxTokens),
    );
    const recomputed = await recompute(single, prompt, layer, maxTokens, model);
    ratios.sequential.push((sequential * sequences) / ours);
    ratios.recomputed.push((recomputed * sequences) / ours);
  }
  await batched.close();
  await single.close();
  const name = `compare, ${strengths} strengths x ${maxTokens} tokens`;
  return [
    row(`${name}: whole experiment`, ratios.ours, "ms"),
    row(
      `${name}: times faster than one sequence at a time, K/V kept`,
      ratios.sequential,
      "x",
      batchingGains ? { least: 3.5 } : {},
    ),
    row(`${name}: times faster than computing the text anew for each token`, ratios.recomputed, "x"),
    row(`${name}: share of llama-batched-bench's speed`, ratios.batchedBench, "x", { least: 0.9 }),
  ];
}

/**
 * Seconds of one row without a K/V cache, a forward pass for the probability and one for each token: measured at four
 * lengths, summed over all by straight lines between.
 */
async function recompute(
  context: Context,
  prompt: Int32Array,
  layer: number,
  maxTokens: number,
  model: Model,
): Promise<number> {
  const steps = [0, 1, 2, 3].map((part) => Math.round((part * (maxTokens - 1)) / 3));
  const longest = randomTokens(model, new TestRandom(2), maxTokens);
  const measured: number[] = [];
  for (const step of steps) {
    const tokens = Int32Array.from([...prompt, ...longest.slice(0, step)]);
    await context.reset();
    measured.push(
      await seconds(() =>
        context.advance({ tokens, layers: [layer], rows: "last", keepStates: false, nextTopK: 1 }),
      ),
    );
  }
  let total = measured[0] as number;
  for (let step = 0; step < maxTokens; step++) {
    const right = Math.max(
      1,
      steps.findIndex((known) => known >= step),
    );
    const [a, b] = [steps[right - 1] as number, steps[right] as number];
    const [low, high] = [measured[right - 1] as number, measured[right] as number];
    total += low + ((high - low) * (step - a)) / (b - a);
  }
  return total;
}

async function batchedBenchSeconds(tool: string, path: string, sequences: number): Promise<number> {
  const { promptTokens, maxTokens } = compare;
  const { stdout } = await run(tool, [
    ...["-m", path, "-t", String(threads), "-c", "2048", "-b", "512", "-ub", "512", "-pps", "-kvu"],
    ...["-npp", String(promptTokens), "-ntg", String(maxTokens), "-npl", String(sequences)],
    ...["--output-format", "jsonl"],
  ]);
  const line = stdout.split("\n").find((each) => each.startsWith("{"));
  const figures = JSON.parse(line ?? "{}") as { t_pp: number; t_tg: number };
  return figures.t_pp + figures.t_tg;
}

async function benchFeatures(model: Model, path: string, llamaBench: string): Promise<Row[]> {
  const random = new TestRandom(3);
  const sequences = Array.from({ length: features.examples }, () =>
    randomTokens(model, random, features.tokens),
  );
  const total = features.examples * features.tokens;
  const nLayer = model.info.nLayer;
  const context = await model.createContext({ nCtx: 256, nBatch: 256, maxSequences: 64, threads });
  const all = [...Array(nLayer).keys()];
  const figures: Record<"speed" | "share" | "exit", number[]> = { speed: [], share: [], exit: [] };
  for (let round = 0; round < rounds; round++) {
    const every = await seconds(() => context.features({ sequences, layers: all }));
    const early = await seconds(() => context.features({ sequences, layers: [features.exitLayer] }));
    const theirs = await promptSpeed(llamaBench, path);
    figures.speed.push(total / every);
    figures.share.push(total / every / theirs);
    figures.exit.push(every / early);
  }
  await context.close();
  const gain = (0.9 * nLayer) / (features.exitLayer + 1);
  const name = `features of ${features.examples} examples`;
  return [
    row(`${name}, all layers`, figures.speed, "tokens/s"),
    row(`${name}, all layers: share of llama-bench's prompt speed`, figures.share, "x", { least: 0.95 }),
    row(`${name}: leaving behind block ${features.exitLayer} of ${nLayer}`, figures.exit, "x", {
      least: gain,
    }),
  ];
}

async function promptSpeed(tool: string, path: string): Promise<number> {
  const { stdout } = await run(tool, [
    ...["-m", path, "-t", String(threads), "-p", "512", "-n", "0", "-ub", "512", "-r", "2", "-o", "json"],
  ]);
  return (JSON.parse(stdout) as Array<{ avg_ts: number }>)[0]?.avg_ts ?? Number.NaN;
}
