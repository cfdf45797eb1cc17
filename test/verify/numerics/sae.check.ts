/**
 * The sparse autoencoder's training against PyTorch from the same initial weights, in double precision: the loss curve step
 * by step, and the report at the end. Rounding grows over the steps. PyTorch in single precision would add its own, which
 * depends on the processor: at 512 features its curve is up to 5e-5 and its report 0.4 % away from its double-precision one.
 */
import { fileURLToPath } from "node:url";
import { initialSaeWeights, trainSae } from "../../../src/native/index.js";
import { sparseSums } from "../../support/activations.js";
import { reference } from "../../support/reference.js";
import type { Figure, NumericCheck } from "./check.js";

const program = fileURLToPath(new URL("reference/sae.py", import.meta.url));

interface Run {
  losses: number[];
  train_mse: number;
  held_out_mse: number;
  explained_variance: number;
  mean_active: number;
  dead_features: number;
}

const steps = 100;
const cases = [
  { hidden: 128, nFeatures: 64 },
  { hidden: 896, nFeatures: 64 },
  { hidden: 896, nFeatures: 512 },
  { hidden: 100, nFeatures: 37 },
];

const relative = (a: number, b: number) => Math.abs(a - b) / Math.abs(b);
async function run(python: string): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { hidden, nFeatures } of cases) {
    const set = sparseSums({ train: 384, test: 128, hidden, directions: 100, active: 5 });
    const init = await initialSaeWeights({ hidden, nFeatures, seed: 3 });
    const l1 = 0.11 * Math.sqrt(hidden);
    const learningRate = 0.06 / Math.sqrt(hidden);
    const ours = await trainSae({ ...set, nFeatures, steps, lossEvery: 1, init, l1, learningRate });
    const input = {
      features: set.features,
      train: set.train,
      encoder_weight: init.encoderWeight,
      encoder_bias: init.encoderBias,
      decoder_weight: init.decoderWeight,
      decoder_bias: init.decoderBias,
      steps,
      l1,
      learning_rate: learningRate,
    };
    const double = reference<Run>(python, program, { ...input, double: true });

    const curve = ours.losses.map(({ loss }, step) => relative(loss, double.losses[step]!));

    const what = `${nFeatures} features, 384 x ${hidden}:`;
    figures.push(
      {
        what: `${what} losses before and after each step`,
        value: Math.min(curve.length, double.losses.length),
        bound: steps + 1,
        atLeast: true,
      },
      { what: `${what} loss curve, worst step, relative`, value: Math.max(...curve), bound: 1e-4 },
      { what: `${what} training error`, value: relative(ours.trainMse, double.train_mse), bound: 1e-3 },
      { what: `${what} held-out error`, value: relative(ours.heldOutMse, double.held_out_mse), bound: 1e-3 },
      {
        what: `${what} explained variance`,
        value: Math.abs(ours.explainedVariance - double.explained_variance),
        bound: 1e-3,
      },
      { what: `${what} active features`, value: relative(ours.meanActive, double.mean_active), bound: 1e-2 },
      { what: `${what} dead features`, value: Math.abs(ours.deadFeatures - double.dead_features), bound: 1 },
    );
  }
  return figures;
}

export default {
  title: "Sparse autoencoder against PyTorch",
  modules: ["numpy", "torch"],
  run,
} satisfies NumericCheck;
