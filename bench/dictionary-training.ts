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
  losses: number[];
  explained: number;
}

/**
 * A TopK dictionary against PyTorch with dense products and against SAELens's own trainer (with dense features: its
 * sparse ones do not train on a processor): the same rows, batches, learning rate, threads and steps. The first step of each
 * is left out of its times.
 * @param processor counts processor time of one thread, for a machine that others use
 */
export async function benchTraining(folder: string, rounds: number, processor: boolean): Promise<Row[]> {
  const threads = processor ? 1 : os.availableParallelism();
  const shape = { hidden: 896, features: 16_384, k: 32, batch: 2048, steps: 5, learningRate: 2e-4 };
  const big = { ...shape, train: 12_288, heldOut: 256 };
  const path = join(folder, "rows");
  await writeRows(path, big);
  const ratios = { dense: [] as number[], saelens: [] as number[] };
  const losses = { ours: 0, dense: 0, saelens: 0 };
  const ours: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const own = await trainOurs(path, big, threads, processor);
    const dense = await trainTheirs(path, big, threads, processor, "dense");
    const lens = await trainTheirs(path, big, threads, processor, "saelens");
    ours.push(perStep(own));
    ratios.dense.push(perStep(dense) / perStep(own));
    ratios.saelens.push(perStep(lens) / perStep(own));
    Object.assign(losses, {
      ours: own.losses.at(-1),
      dense: dense.losses.at(-1),
      saelens: lens.losses.at(-1),
    });
  }
  const what = `train, TopK k = ${big.k}, ${big.features} features, ${big.hidden} wide, ${threads} threads`;
  const told = Object.entries(losses).map(([name, loss]) => `${name} ${loss.toFixed(4)}`);
  const rate = (big.batch / median(ours)).toFixed(0);
  const rows = [
    row(`${what}: faster than dense PyTorch (ours ${rate} rows/s)`, ratios.dense, "x", { least: 3 }),
    row(
      `${what}: faster than SAELens's trainer; error after ${big.steps} steps: ${told.join(", ")}`,
      ratios.saelens,
      "x",
      {
        least: 1.5,
      },
    ),
  ];
  return [...rows, await quality(folder, threads)];
}

/**
 * To the end of a training: what a dictionary of the same sparsity explains of rows that were held out, each at the better of
 * two learning rates: their first weights differ in length, so that one rate is not the same to both.
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

async function trainOurs(path: string, shape: Shape, threads: number, processor: boolean): Promise<Trained> {
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
    const seconds: number[] = [];
    const losses: number[] = [];
    for (let step = 0; step < steps; step++) {
      const [start, used] = [performance.now(), process.cpuUsage()];
      losses.push((await trainer.run(1)).mse);
      const { user, system } = process.cpuUsage(used);
      seconds.push(processor ? (user + system) / 1e6 : (performance.now() - start) / 1000);
    }
    return { seconds, losses, explained: (await trainer.evaluate()).explainedVariance };
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
): Promise<Trained> {
  const count = String(threads);
  return reference<Trained>(
    await environment("saelens"),
    fileURLToPath(new URL("python/sparse_dictionary.py", import.meta.url)),
    { ...shape, path, kind, processor, threads, seed: 1, train_rows: train, learning_rate: learningRate },
    { OMP_NUM_THREADS: count, MKL_NUM_THREADS: count, HF_HUB_OFFLINE: "1" },
  );
}
