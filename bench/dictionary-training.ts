import { once } from "node:events";
import { createWriteStream } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { filledSettings } from "../src/lab/training/settings.js";
import { DictionaryTrainer } from "../src/native/index.js";
import { TestRandom } from "../test/support/random.js";
import { environment } from "../test/support/real/environments.js";
import { reference } from "../test/support/reference.js";
import { median, type Row, row } from "./figures.js";

interface Shape {
  hidden: number;
  features: number;
  k: number;
  batch: number;
  steps: number;
  train: number;
  heldOut: number;
  learningRate: number;
}

interface Trained {
  seconds: number[];
  /** Of held-out rows: mean square of an element, and what is explained. */
  error: number;
  explained: number;
}

/** The initial weights of a training, [features, hidden]. */
interface FirstWeights {
  encoder: Float32Array;
  decoder: Float32Array;
}

/**
 * A TopK dictionary against PyTorch with dense products and against SAELens's own trainer (with dense features: its
 * sparse ones do not train on a processor): from the same weights, with the same rows, batches, learning rate, threads and
 * steps. The first step of each is left out of its times.
 * @param processor counts processor time of one thread, for a machine that others use
 */
export async function benchTraining(
  folder: string,
  { rounds, processor, steps }: { rounds: number; processor: boolean; steps: number },
): Promise<Row[]> {
  const threads = processor ? 1 : os.availableParallelism();
  const shape = { hidden: 896, features: 16_384, k: 32, batch: 2048, steps, learningRate: 2e-4 };
  const big: Shape = { ...shape, train: 24_576, heldOut: 2048 };
  const path = join(folder, "rows");
  await writeRows(path, big);
  const faster = { dense: [] as number[], saelens: [] as number[] };
  const errors = { dense: [] as number[], saelens: [] as number[] };
  const ours: Trained[] = [];
  for (let round = 0; round < rounds; round++) {
    const { first, ...own } = await trainOurs(path, big, threads, processor);
    ours.push(own);
    for (const kind of ["dense", "saelens"] as const) {
      const theirs = await trainTheirs(path, big, threads, processor, kind, first);
      faster[kind].push(perStep(theirs) / perStep(own));
      errors[kind].push(own.error / theirs.error);
    }
  }
  const what = `train, TopK k = ${big.k}, ${big.features} features, ${big.hidden} wide, ${threads} threads`;
  const rate = (big.batch / median(ours.map(perStep))).toFixed(0);
  const own = median(ours.map(({ error }) => error)).toFixed(4);
  const behind = `${what}: held-out error after ${steps} steps from the same weights (ours ${own}) over that of`;
  return [
    row(`${what}: faster than dense PyTorch (ours ${rate} rows/s)`, faster.dense, "x", { least: 3 }),
    row(`${what}: faster than SAELens's trainer`, faster.saelens, "x", { least: 1.5 }),
    row(`${behind} dense PyTorch`, errors.dense, "x", { most: 1.01 }),
    row(`${behind} SAELens's trainer`, errors.saelens, "x", { most: 1.01 }),
    await quality(folder, threads),
  ];
}

/**
 * To the end of a training: how much of held-out rows a dictionary of the same sparsity explains, each at the better of
 * two learning rates, each from its own first weights.
 */
async function quality(folder: string, threads: number): Promise<Row> {
  const small: Shape = {
    hidden: 256,
    features: 2048,
    k: 16,
    batch: 1024,
    steps: 400,
    train: 32_768,
    heldOut: 2048,
    learningRate: 1e-3,
  };
  const path = join(folder, "small");
  await writeRows(path, small);
  const best = { ours: 0, theirs: 0 };
  for (const learningRate of [1e-3, 4e-3]) {
    const shape = { ...small, learningRate };
    best.ours = Math.max(best.ours, (await trainOurs(path, shape, threads, false)).explained);
    best.theirs = Math.max(
      best.theirs,
      (await trainTheirs(path, shape, threads, false, "saelens")).explained,
    );
  }
  return row(
    `quality, TopK k = ${small.k}, ${small.features} features, ${small.hidden} wide, ${small.steps} steps: variance explained (${percent(best.ours)}) less SAELens's (${percent(best.theirs)}), points`,
    [100 * (best.ours - best.theirs)],
    "points",
    { least: -0.5 },
  );
}

const percent = (share: number) => `${(100 * share).toFixed(2)} %`;

/** The first step pays for memory that the others find. */
const perStep = ({ seconds }: Trained) => median(seconds.slice(1));

/** Rows that are sums of some of many directions, which fire the more rarely the higher their number, and noise. */
async function writeRows(path: string, { hidden, train, heldOut }: Shape): Promise<void> {
  const random = new TestRandom(hidden);
  const count = 4 * hidden;
  const directions = random.normals(count * hidden);
  const file = createWriteStream(path);
  const noise = random.normals(64 * hidden);
  for (let written = 0; written < train + heldOut; written++) {
    const values = Float32Array.from(
      { length: hidden },
      (_, i) => 0.3 * (noise[((written % 64) * hidden + i * 7) % noise.length] as number),
    );
    for (let i = 0; i < 20; i++) {
      const direction = Math.floor(count * random.uniform() ** 2) * hidden;
      const strength = 0.5 + random.uniform();
      for (let j = 0; j < hidden; j++)
        values[j] = (values[j] as number) + strength * (directions[direction + j] as number);
    }
    if (!file.write(new Uint8Array(values.buffer))) await once(file, "drain");
  }
  file.end();
  await once(file, "finish");
}

async function trainOurs(
  path: string,
  shape: Shape,
  threads: number,
  processor: boolean,
): Promise<Trained & { first: FirstWeights }> {
  const { hidden, features, k, batch, steps, train, heldOut, learningRate } = shape;
  const settings = filledSettings(
    {
      ...{ architecture: "topk", features, k, batch, steps, seed: 1, learning_rate: learningRate },
      ...{ warmup: 0, decay: 0 },
    },
    hidden,
    train,
  );
  const uses = Uint8Array.from({ length: train + heldOut }, (_, i) => (i < train ? 1 : 2));
  const trainer = await DictionaryTrainer.open({
    ...settings,
    // As in SAELens no feature is dead within a thousand steps.
    ...{ deadAfter: 1000, pieces: [{ path, offset: 0, type: "f32", uses }], threads },
  });
  try {
    const { encoder, decoder } = await trainer.state();
    const seconds: number[] = [];
    for (let step = 0; step < steps; step++) {
      const [start, used] = [performance.now(), process.cpuUsage()];
      await trainer.run(1);
      const { user, system } = process.cpuUsage(used);
      seconds.push(processor ? (user + system) / 1e6 : (performance.now() - start) / 1000);
    }
    const { mse: error, explainedVariance: explained } = await trainer.evaluate();
    return { seconds, error, explained, first: { encoder, decoder } as FirstWeights };
  } finally {
    await trainer.close();
  }
}

async function trainTheirs(
  path: string,
  { train, learningRate, heldOut: _, ...shape }: Shape,
  threads: number,
  processor: boolean,
  kind: "dense" | "saelens",
  first?: FirstWeights,
): Promise<Trained> {
  const count = String(threads);
  return reference<Trained>(
    await environment("saelens"),
    fileURLToPath(new URL("python/sparse_dictionary.py", import.meta.url)),
    {
      ...{ ...shape, ...first, path, kind, processor, threads },
      ...{ seed: 1, train_rows: train, learning_rate: learningRate },
    },
    { OMP_NUM_THREADS: count, MKL_NUM_THREADS: count, HF_HUB_OFFLINE: "1" },
  );
}
