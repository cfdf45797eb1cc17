import type { ProbeConfig, ProbeResult } from "../../contracts/index.js";
import { saidPoint } from "../../contracts/names.js";
import { type TrainedProbe, trainProbe } from "../../native/index.js";
import { writeNpz } from "../npz.js";
import type { Findings, OperationInput } from "./operation.js";
import { trainLayers } from "./train-layers.js";
import { atLeastAsGood, bootstrapIntervals, spreadOf } from "./uncertainty.js";

/** Fits to shuffled labels that show how far their figures spread. */
const permutations = 100;
/** Draws of a bootstrap interval. */
const resamples = 2000;

/**
 * Trains a linear probe on a row of each example at each selected layer, its last token's block output unless told otherwise: logistic regression on
 * activations standardised with the training examples' statistics, reported on the held-out ones.
 */
export async function probe(input: OperationInput<ProbeConfig>): Promise<Findings<ProbeResult>> {
  const { config } = input;
  const labels = Uint8Array.from(config.examples, ({ label }) => label);
  const reports = await trainLayers(input, {
    train: (data, options) => trainProbe({ ...data, labels, seed: config.seed, permutations }, options),
    write: (layer, trained) => writeWeights(input, layer, trained),
    report: (layer, trained) => report(config, layer, trained),
  });
  return { ...(config.point && { point: config.point }), ...(config.rows && { rows: config.rows }), reports };
}

/** In double precision, so that the file's own arithmetic gives the reported scores. */
function writeWeights(
  { artifacts, config: { point } }: OperationInput<ProbeConfig>,
  layer: number,
  { weight, bias, mean, std }: TrainedProbe,
): Promise<void> {
  const shape = [weight.length];
  return writeNpz(artifacts, `probe-layer-${layer}.npz`, {
    weight: { shape, data: weight },
    bias: { shape: [], data: Float64Array.of(bias) },
    mean: { shape, data: mean },
    std: { shape, data: std },
    ...saidPoint(point),
  });
}

function report(config: ProbeConfig, layer: number, trained: TrainedProbe): ProbeResult["reports"][number] {
  const scores = config.examples.map(({ text, split, label }, row) => ({
    text,
    split,
    label,
    score: trained.scores[row] as number,
  }));
  const heldOut = scores.filter(({ split }) => split === "test");
  const intervals = bootstrapIntervals(heldOut, { resamples, seed: config.seed });
  const { permutedAccuracies, permutedAucs } = trained;
  return {
    layer,
    accuracy: trained.accuracy,
    auc: trained.auc,
    brier: trained.brier,
    majority_accuracy: trained.majorityAccuracy,
    shuffled_label_accuracy: trained.shuffledLabelAccuracy,
    train_size: trained.trainSize,
    test_size: trained.testSize,
    converged: trained.converged,
    iterations: trained.iterations,
    scores,
    accuracy_interval: intervals.accuracy,
    auc_interval: intervals.auc,
    shuffled_labels: {
      permutations,
      accuracy: spreadOf(permutedAccuracies),
      auc: spreadOf(permutedAucs),
      p_accuracy: atLeastAsGood(permutedAccuracies, trained.accuracy),
      p_auc: atLeastAsGood(permutedAucs, trained.auc),
    },
  };
}
