/**
 * Trainers against scikit-learn and PyTorch on the same number of threads, and against what the processor can do.
 * Ours is timed from the call to the result: copies, standardisation, Gram matrix, metrics. Theirs is timed around
 * the fit alone. Rounds alternate, so that a busy machine slows both; a row is the median of the rounds' ratios.
 */
import os from "node:os";
import { fileURLToPath } from "node:url";
import { initialSaeWeights, trainProbe, trainSae } from "../src/native/index.js";
import { productRate, trainKernels } from "../src/native/train.js";
import { sparseSums, twoClasses } from "../test/support/activations.js";
import { pythonWith } from "../test/support/python.js";
import { reference } from "../test/support/reference.js";

export interface TrainRow {
  name: string;
  /** Median over the rounds. */
  value: number;
  /** Smallest and largest round. */
  spread: [number, number];
  unit: string;
  /** What `value` has to reach, e.g. ">= 1.5"; absent for information. */
  goal?: string;
  ok: boolean;
}

const program = (name: string) =>
  fileURLToPath(new URL(`../test/verify/numerics/reference/${name}.py`, import.meta.url));
const rows = 384;
const rounds = 3;

/** All rows. Threads: one, and all processors. @throws Error when Python's packages are missing */
export async function benchTrain(): Promise<TrainRow[]> {
  const python = pythonWith("numpy", "sklearn", "torch");
  if (python === undefined) {
    throw new Error("Needs Debian's python3-numpy, python3-sklearn and python3-torch, or TAPLINE_PYTHON.");
  }
  const table: TrainRow[] = [];
  for (const threads of new Set([1, os.availableParallelism()])) {
    const environment = { OPENBLAS_NUM_THREADS: String(threads), OMP_NUM_THREADS: String(threads) };
    for (const hidden of [896, 2048, 4096]) {
      table.push(...(await benchProbe(python, hidden, threads, environment)));
    }
    const ours = (await productRate(threads, 1)) / 1e9;
    table.push({
      name: `matrix products in the cache, ${trainKernels()}, ${threads} threads`,
      ...{ value: ours, spread: [ours, ours], unit: "GFLOPS", ok: true },
    });
    for (const nFeatures of [64, 512]) {
      for (const hidden of [896, 2048, 4096]) {
        table.push(
          ...(await benchSae(python, { hidden, nFeatures, threads, rate: ours * 1e9 }, environment)),
        );
      }
    }
  }
  return table;
}

async function benchProbe(
  python: string,
  hidden: number,
  threads: number,
  environment: NodeJS.ProcessEnv,
): Promise<TrainRow[]> {
  const set = twoClasses({ train: rows, test: 128, hidden, separation: 0.05 });
  const fit = (tolerance: number) =>
    reference<{ seconds: number[] }>(
      python,
      program("probe"),
      { ...set, c: 1, tolerance, repeats: 5 },
      environment,
    ).seconds;
  const ratios: { default: number[]; equal: number[]; ms: number[] } = { default: [], equal: [], ms: [] };
  for (let round = 0; round < rounds; round++) {
    const [loose, tight] = [median(fit(1e-4)), median(fit(1e-8))];
    const seconds: number[] = [];
    for (let i = 0; i < 5; i++) {
      const start = process.hrtime.bigint();
      const probe = await trainProbe({ ...set, threads, control: false });
      seconds.push(Number(process.hrtime.bigint() - start) / 1e9);
      if (!probe.converged || probe.gradientNorm > 1e-8) {
        throw new Error(`The probe of ${rows} x ${hidden} did not converge: ${probe.gradientNorm}.`);
      }
    }
    ratios.ms.push(1000 * median(seconds));
    ratios.default.push(loose / median(seconds));
    ratios.equal.push(tight / median(seconds));
  }
  const name = `probe ${rows} x ${hidden}, ${threads} threads`;
  return [
    row(`${name}: to gradient 1e-8`, ratios.ms, "ms"),
    row(`${name}: times faster than scikit-learn to 1e-4`, ratios.default, "x", 1.5),
    row(`${name}: times faster than scikit-learn to 1e-8`, ratios.equal, "x", 4),
  ];
}

interface SaeCase {
  hidden: number;
  nFeatures: number;
  threads: number;
  /** Best known rate of matrix products, in operations a second. */
  rate: number;
}

async function benchSae(
  python: string,
  { hidden, nFeatures, threads, rate }: SaeCase,
  environment: NodeJS.ProcessEnv,
): Promise<TrainRow[]> {
  const steps = nFeatures * hidden > 500_000 ? 20 : 100;
  const set = sparseSums({ train: rows, test: 32, hidden, directions: 100, active: 5 });
  const init = await initialSaeWeights({ hidden, nFeatures });
  const l1 = 0.11 * Math.sqrt(hidden);
  const learningRate = 0.06 / Math.sqrt(hidden);
  const input = {
    features: set.features,
    train: set.train,
    encoder_weight: init.encoderWeight,
    encoder_bias: init.encoderBias,
    decoder_weight: init.decoderWeight,
    decoder_bias: init.decoderBias,
    ...{ steps, threads, l1, learning_rate: learningRate },
  };
  const products = (5 * 2 * rows * hidden * nFeatures) / rate;
  const figures: { ms: number[]; torch: number[]; over: number[] } = { ms: [], torch: [], over: [] };
  for (let round = 0; round < rounds; round++) {
    const torch = reference<{ seconds: number }>(python, program("sae"), input, environment).seconds / steps;
    const ours =
      (await trainSae({ ...set, nFeatures, steps, threads, init, l1, learningRate })).seconds / steps;
    figures.ms.push(1000 * ours);
    figures.torch.push(torch / ours);
    figures.over.push(ours / products);
  }
  const name = `sae ${nFeatures} features, ${rows} x ${hidden}, ${threads} threads`;
  return [
    row(`${name}: a step`, figures.ms, "ms"),
    row(
      `${name}: times faster than PyTorch`,
      figures.torch,
      "x",
      nFeatures === 64 && hidden === 896 ? 1.3 : 1,
    ),
    row(`${name}: time over that of its matrix products alone`, figures.over, "x", undefined, 1.25),
  ];
}

function row(name: string, values: number[], unit: string, least?: number, most?: number): TrainRow {
  const value = median(values);
  const spread: [number, number] = [Math.min(...values), Math.max(...values)];
  if (least !== undefined) return { name, value, spread, unit, goal: `>= ${least}`, ok: value >= least };
  if (most !== undefined) return { name, value, spread, unit, goal: `<= ${most}`, ok: value <= most };
  return { name, value, spread, unit, ok: true };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
