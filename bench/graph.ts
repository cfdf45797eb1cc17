/**
 * Attribution graphs with transcoders: beside circuit-tracer 0.5.0 on a model of Llama's form in F32 with the same random
 * transcoders, in alternating rounds; and on a random model of 8B's shape in Q4_K_M with 16,384 features per block, 32 tokens and
 * 1,000 nodes (`--only large`: 9 GB on disk in the cache, made once).
 */
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../scripts/build/source.js";
import { Dictionaries } from "../src/library/index.js";
import { TestRandom } from "../test/support/random.js";
import { randomTranscoder, writeSetConfig, writeTranscoder } from "../test/support/random-transcoders.js";
import { runProgram } from "../test/support/real/cache.js";
import { environment } from "../test/support/real/environments.js";
import {
  type RandomSetting,
  type Traced,
  trace,
  writeInputs,
} from "../test/verify/circuit-tracer/compare.js";
import { type Row, row } from "./figures.js";
import type { GraphRun, GraphRunResult } from "./graph-run.js";
import { eightBillion, writeLargeModel } from "./models/large-model.js";

const threads = os.availableParallelism();

export async function benchGraph(options: {
  quick: boolean;
  rounds?: number;
  only?: string;
}): Promise<Row[]> {
  const wants = (part: string) => options.only === undefined || new RegExp(options.only).test(part);
  const rows: Row[] = [];
  if (wants("peer"))
    rows.push(...(await besideCircuitTracer(options.quick, options.rounds ?? (options.quick ? 1 : 5))));
  if (wants("large") && !options.quick) rows.push(...(await large()));
  return rows;
}

const tokensOf = (count: number, vocabulary: number) =>
  Int32Array.from({ length: count }, (_, i) => (i === 0 ? 1 : (i * 7919 + 5) % vocabulary));

async function ours(folder: string, config: Omit<GraphRun, "threads">): Promise<GraphRunResult> {
  const path = join(folder, "run.json");
  writeFileSync(path, JSON.stringify({ ...config, threads }));
  const script = fileURLToPath(new URL("./graph-run.ts", import.meta.url));
  const output = await runProgram(process.execPath, ["--import", "tsx", script, path], {});
  return JSON.parse(output.trim().split("\n").at(-1) as string) as GraphRunResult;
}

async function besideCircuitTracer(quick: boolean, rounds: number): Promise<Row[]> {
  const shape = quick
    ? { blocks: 6, hidden: 192, feedForward: 512, heads: 6, kvHeads: 2, vocabulary: 1024 }
    : { blocks: 12, hidden: 576, feedForward: 1536, heads: 9, kvHeads: 3, vocabulary: 4096 };
  const features = quick ? 512 : 2048;
  const tokens = tokensOf(quick ? 12 : 24, shape.vocabulary);
  const setting: RandomSetting = {
    ...{ shape, features, skip: true, tokens, threads, batch: 256 },
    maxFeatures: 2000,
  };
  const folder = await mkdtemp(join(os.tmpdir(), "tapline-bench-graph-"));
  try {
    await writeInputs(folder, setting);
    const home = join(folder, "home");
    const dictionaries = new Dictionaries(home);
    for (let layer = 0; layer < shape.blocks; layer++)
      await dictionaries.add(`set-${layer}`, join(folder, "set", `layer_${layer}.safetensors`));
    const pairs: { mine: GraphRunResult; theirs: Traced }[] = [];
    for (let round = 0; round < rounds; round++) {
      const theirs = await trace(folder, setting);
      const targets = theirs.targets.map((token, i) => ({ token, weight: theirs.weights[i] as number }));
      const model = join(folder, "model.gguf");
      const mine = await ours(folder, { model, home, tokens: [...tokens], nodes: 2000, targets });
      pairs.push({ mine, theirs });
    }
    const [{ mine }] = pairs as [(typeof pairs)[number]];
    const what = `${shape.blocks} blocks, ${shape.hidden} wide, ${tokens.length} tokens, ${Math.min(2000, mine.active)} of ${mine.active} active features, ${threads} threads`;
    const each = (of: (pair: (typeof pairs)[number]) => number) => pairs.map(of);
    return [
      row(
        `${what}: times as fast as circuit-tracer`,
        each(({ mine, theirs }) => theirs.seconds / mine.seconds),
        "x",
        { least: 3 },
      ),
      row(
        `${what}: processor time of circuit-tracer over ours`,
        each(({ mine, theirs }) => theirs.processor / mine.processor),
        "x",
      ),
      row(
        `${what}: peak memory over circuit-tracer's`,
        each(({ mine, theirs }) => mine.peak / theirs.peak),
        "x",
        { most: 0.5 },
      ),
      row(
        `${what}: ours`,
        each(({ mine }) => mine.seconds),
        "s",
      ),
      row(
        `${what}: circuit-tracer`,
        each(({ theirs }) => theirs.seconds),
        "s",
      ),
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Matrix products of PyTorch in F32, on the same threads. */
async function matrixSpeed(): Promise<number> {
  const program =
    `import time, torch; torch.set_num_threads(${threads}); a = torch.randn(4096, 4096); b = torch.randn(4096, 4096); a @ b; ` +
    "t = time.perf_counter(); [a @ b for _ in range(3)]; print(3 * 2 * 4096**3 / (time.perf_counter() - t))";
  return Number((await runProgram(await environment("circuit-tracer"), ["-c", program], {})).trim());
}

async function large(): Promise<Row[]> {
  const folder = join(cacheFolder(process.env), "bench", "graph-8b");
  const model = join(folder, "model.gguf");
  const home = join(folder, "home");
  const features = 16_384;
  mkdirSync(folder, { recursive: true });
  if (!existsSync(model)) await writeLargeModel(model, eightBillion);
  const dictionaries = new Dictionaries(home);
  const place = await mkdtemp(join(folder, "one-"));
  writeSetConfig(place);
  const there = await dictionaries.names();
  for (let layer = 0; layer < eightBillion.blocks; layer++) {
    if (there.includes(`set-${layer}`)) continue;
    const one = randomTranscoder(layer, { width: eightBillion.hidden, features });
    // As published sets: 16 bits, and about one feature in 250 is active.
    for (const matrix of [one.encoder, one.decoder])
      for (let i = 0; i < matrix.length; i++) matrix[i] = bfloat(matrix[i] as number);
    one.threshold?.fill(2.6);
    writeTranscoder(place, layer, one);
    await dictionaries.add(`set-${layer}`, join(place, `layer_${layer}.safetensors`));
  }
  await rm(place, { recursive: true });
  const random = new TestRandom(3);
  const tokens = Array.from({ length: 32 }, (_, i) => (i === 0 ? 1 : Math.floor(random.uniform() * 100_000)));
  const before = await matrixSpeed();
  const valueWidth = (eightBillion.hidden / eightBillion.heads) * eightBillion.kvHeads;
  const config = { model, home, tokens, nodes: 1000, valueWidth };
  const found = await ours(folder, config);
  const after = await matrixSpeed();
  const half = await ours(folder, { ...config, nodes: 500 });
  const short = await ours(folder, { ...config, tokens: tokens.slice(0, 16) });
  const own = found.peak - statSync(model).size;
  const speed = found.flops / found.propagation / ((before + after) / 2);
  const what = `8B in Q4_K_M, ${features} features per block, 32 tokens, 1,000 nodes of ${found.active} active features, ${threads} threads`;
  return [
    row(`${what}: whole graph`, [found.seconds / 60], "min"),
    row(`${what}: memory beside the model's file`, [own / 1e9], "GB", { most: 12 }),
    row(`${what}: estimate of the memory over it`, [found.bytes / own], "x"),
    row(`${what}: propagation over PyTorch's matrix speed`, [speed], "x", { least: 0.6 }),
    row(`${what}: with 500 nodes`, [half.seconds / 60], "min"),
    row(`${what}: with 16 tokens`, [short.seconds / 60], "min"),
  ];
}

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

/** Rounded down to the 16 bits of bfloat16. */
function bfloat(value: number): number {
  float[0] = value;
  bits[0] = (bits[0] as number) & 0xffff0000;
  return float[0] as number;
}
