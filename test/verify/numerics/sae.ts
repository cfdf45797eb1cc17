/** The sparse autoencoder's training against PyTorch from the same initial weights: loss curve and report. */
import { fileURLToPath } from "node:url";
import { initialSaeWeights, trainSae } from "../../../src/native/index.js";
import { sparseSums } from "../../support/activations.js";
import { reference } from "../../support/reference.js";

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
let failures = 0;
for (const { hidden, nFeatures } of cases) {
  const set = sparseSums({ train: 384, test: 128, hidden, directions: 100, active: 5 });
  const init = await initialSaeWeights({ hidden, nFeatures, seed: 3 });
  const l1 = 0.11 * Math.sqrt(hidden);
  const learningRate = 0.06 / Math.sqrt(hidden);
  const ours = await trainSae({ ...set, nFeatures, steps, lossEvery: 1, init, l1, learningRate });
  const theirs = reference<Run>(program, {
    features: set.features,
    train: set.train,
    encoder_weight: init.encoderWeight,
    encoder_bias: init.encoderBias,
    decoder_weight: init.decoderWeight,
    decoder_bias: init.decoderBias,
    steps,
    l1,
    learning_rate: learningRate,
  });
  const curve = ours.losses.map(({ loss }, step) => relative(loss, theirs.losses[step]!));
  const worst = Math.max(...curve);
  const report = Math.max(
    relative(ours.trainMse, theirs.train_mse),
    relative(ours.heldOutMse, theirs.held_out_mse),
    Math.abs(ours.explainedVariance - theirs.explained_variance),
  );
  const holds =
    curve.length === steps + 1 &&
    theirs.losses.length === steps + 1 &&
    worst <= 1e-4 &&
    report <= 1e-3 &&
    relative(ours.meanActive, theirs.mean_active) <= 1e-2 &&
    Math.abs(ours.deadFeatures - theirs.dead_features) <= 1;
  if (!holds) failures++;
  console.log(
    `${holds ? "ok  " : "FAIL"} ${nFeatures} features, 384 x ${hidden}: loss ${ours.losses[0]!.loss.toFixed(4)} -> ` +
      `${ours.losses.at(-1)!.loss.toFixed(4)}, curve off by at most ${worst.toExponential(1)}, ` +
      `report by ${report.toExponential(1)}; L0 ${ours.meanActive.toFixed(2)} and ${theirs.mean_active.toFixed(2)}, ` +
      `dead ${ours.deadFeatures} and ${theirs.dead_features}`,
  );
}
process.exitCode = failures === 0 ? 0 : 1;
