/**
 * Trainers against scikit-learn and PyTorch on the same number of threads, and against what the processor can do.
 * Ours is timed from the call to the result: copies, standardisation, Gram matrix, metrics. Theirs is timed around
 * the fit or the steps alone. Where the processor has AVX-512, they run with OpenBLAS's own choice of kernels and
 * with its AVX-512 kernels, and the faster of the two counts. Rounds alternate, so that a busy machine slows both;
 * a row is the median of the rounds' ratios.
 */
import os from "node:os";
import { fileURLToPath } from "node:url";
import { initialSaeWeights, trainProbe, trainSae } from "../src/native/index.js";
import { productRate, trainKernels } from "../src/native/train.js";
import {
  correlatedClasses,
  type MadeActivations,
  sparseSums,
  twoClasses,
} from "../test/support/activations.js";
import { pythonWith } from "../test/support/python.js";
import { type ReferenceInput, reference } from "../test/support/reference.js";
import { median, type Row, row } from "./figures.js";

const examples = 384;

interface Bench {
  python: string;
  threads: number;
  rounds: number;
}

/** One thread, and all processors. @throws Error when Python's packages are missing */
export async function benchTrain({ quick }: { quick: boolean }): Promise<Row[]> {
  const python = pythonWith("numpy", "sklearn", "torch");
  if (python === undefined) {
    throw new Error("Needs Debian's python3-numpy, python3-sklearn and python3-torch, or TAPLINE_PYTHON.");
  }
  const rounds = quick ? 1 : 3;
  const sizes = quick ? [896] : [896, 2048, 4096];
  const rows: Row[] = [];
  for (const threads of new Set([1, os.availableParallelism()])) {
    const bench = { python, threads, rounds };
    for (const hidden of sizes) rows.push(...(await benchProbe(bench, "correlated", hidden)));
    for (const hidden of sizes) rows.push(...(await benchSae(bench, 64, hidden)));
    rows.push(...(await benchSae(bench, 512, 896)));
  }
  for (const hidden of sizes) {
    rows.push(...(await benchProbe({ python, threads: 1, rounds: 1 }, "isotropic", hidden)));
  }
  return rows;
}

/**
 * Runs a Python program once a round, with the kinds of OpenBLAS kernels that this processor has in the first one,
 * with the fastest of them in all others.
 */
class Reference<T> {
  #kinds = trainKernels() === "avx512" ? [{}, { OPENBLAS_CORETYPE: "SkylakeX" }] : [{}];

  constructor(
    readonly bench: Bench,
    readonly program: string,
    readonly input: ReferenceInput,
    readonly seconds: (result: T) => number,
  ) {}

  run(): T {
    const count = String(this.bench.threads);
    const program = fileURLToPath(new URL(this.program, import.meta.url));
    const results = this.#kinds.map((kind) => {
      const environment = { OPENBLAS_NUM_THREADS: count, OMP_NUM_THREADS: count, ...kind };
      return { kind, result: reference<T>(this.bench.python, program, this.input, environment) };
    });
    const fastest = results.reduce((a, b) => (this.seconds(b.result) < this.seconds(a.result) ? b : a));
    this.#kinds = [fastest.kind];
    return fastest.result;
  }
}

interface Fit {
  seconds: number;
  gradient: number;
}

/**
 * "correlated" is shaped like block outputs (see correlatedClasses) and has goals; "isotropic" is noise without
 * structure, on which any solver needs few steps, and is included for information.
 */
async function benchProbe(bench: Bench, data: "correlated" | "isotropic", hidden: number): Promise<Row[]> {
  const shape = { train: examples, test: 128, hidden };
  const set: MadeActivations =
    data === "correlated"
      ? correlatedClasses({ ...shape, separation: 1 })
      : twoClasses({ ...shape, separation: 0.05 });
  const theirs = new Reference<{ default: Fit; equal: Fit }>(
    bench,
    "python/probe.py",
    { ...set, repeats: 7 },
    (result) => result.default.seconds + result.equal.seconds,
  );
  const figures = { ms: [] as number[], default: [] as number[], equal: [] as number[] };
  const gradients = { ours: 0, default: 0, equal: 0 };
  for (let round = 0; round < bench.rounds; round++) {
    const result = theirs.run();
    const seconds: number[] = [];
    for (let i = 0; i < 15; i++) {
      const start = process.hrtime.bigint();
      const probe = await trainProbe({ ...set, threads: bench.threads, control: false });
      seconds.push(Number(process.hrtime.bigint() - start) / 1e9);
      gradients.ours = Math.max(gradients.ours, probe.gradientNorm);
    }
    const ours = median(seconds);
    figures.ms.push(1000 * ours);
    figures.default.push(result.default.seconds / ours);
    figures.equal.push(result.equal.seconds / ours);
    gradients.default = result.default.gradient;
    gradients.equal = result.equal.gradient;
  }
  if (gradients.ours > 1e-8) {
    throw new Error(`The probe of ${examples} x ${hidden} did not converge: ${gradients.ours}.`);
  }
  const goals =
    data === "correlated"
      ? { default: { least: 1.5 }, equal: { least: equalGoal(hidden, bench.threads) } }
      : {};
  const name = `probe ${examples} x ${hidden}, ${data}, ${bench.threads} threads`;
  const reached = (gradient: number) => `(its gradient ${gradient.toExponential(0)})`;
  return [
    row(`${name}: to gradient 1e-8`, figures.ms, "ms"),
    row(
      `${name}: times faster than scikit-learn at its default ${reached(gradients.default)}`,
      figures.default,
      "x",
      goals.default,
    ),
    row(
      `${name}: times faster than scikit-learn to 1e-8 ${reached(gradients.equal)}`,
      figures.equal,
      "x",
      goals.equal,
    ),
  ];
}

/** Times faster than scikit-learn at an equal gradient: on few columns, and there on two threads, less is to be won. */
function equalGoal(hidden: number, threads: number): number {
  if (hidden >= 2048) return 4;
  return threads === 1 ? 3.5 : 2.5;
}

async function benchSae(bench: Bench, nFeatures: number, hidden: number): Promise<Row[]> {
  const { threads } = bench;
  const steps = nFeatures * hidden > 100_000 ? 40 : 100;
  const set = sparseSums({ train: examples, test: 32, hidden, directions: 100, active: 5 });
  const init = await initialSaeWeights({ hidden, nFeatures });
  const l1 = 0.11 * Math.sqrt(hidden);
  const learningRate = 0.06 / Math.sqrt(hidden);
  const theirs = new Reference<{ seconds: number }>(
    bench,
    "../test/verify/numerics/reference/sae.py",
    {
      features: set.features,
      train: set.train,
      encoder_weight: init.encoderWeight,
      encoder_bias: init.encoderBias,
      decoder_weight: init.decoderWeight,
      decoder_bias: init.decoderBias,
      ...{ steps, threads, l1, learning_rate: learningRate },
    },
    ({ seconds }) => seconds,
  );
  const figures = { ms: [] as number[], torch: [] as number[], over: [] as number[] };
  for (let round = 0; round < bench.rounds; round++) {
    const torch = theirs.run().seconds / steps;
    const rate = await productRate(threads, 0.3);
    const runs: number[] = [];
    for (let i = 0; i < 3; i++) {
      runs.push(
        (await trainSae({ ...set, nFeatures, steps, threads, init, l1, learningRate })).seconds / steps,
      );
    }
    const ours = median(runs);
    figures.ms.push(1000 * ours);
    figures.torch.push(torch / ours);
    // Two products forward, three backward.
    figures.over.push(ours / ((5 * 2 * examples * hidden * nFeatures) / rate));
  }
  const named = nFeatures === 64 && hidden === 896;
  const name = `sae ${nFeatures} features, ${examples} x ${hidden}, ${threads} threads`;
  return [
    row(`${name}: a step`, figures.ms, "ms"),
    row(`${name}: times faster than PyTorch`, figures.torch, "x", { least: named ? 1.3 : 1 }),
    row(
      `${name}: time over that of its matrix products alone`,
      figures.over,
      "x",
      named ? { most: 1.25 } : {},
    ),
  ];
}
