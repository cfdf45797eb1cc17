import type { ProbeConfig, ProbeResult } from "../../contracts/index.js";
import { type TrainedProbe, trainProbe } from "../../native/index.js";
import { writeNpz } from "../npz.js";
import { exampleFeatures } from "./example-features.js";
import type { Findings, OperationInput } from "./operation.js";

/**
 * Trains a linear probe on the final-token block outputs of each selected layer: logistic regression on
 * activations standardised with the training examples' statistics, reported on the held-out ones.
 */
export async function probe(input: OperationInput<ProbeConfig>): Promise<Findings<ProbeResult>> {
  const { config, clock, progress, signal } = input;
  const { byLayer, train } = await exampleFeatures(input);
  const labels = Uint8Array.from(config.examples, ({ label }) => label);
  const reports: ProbeResult["reports"] = [];
  for (const [index, layer] of config.layers.entries()) {
    const features = byLayer.get(layer) as Float32Array;
    const trained = await clock.measure("train", () =>
      trainProbe(
        { features, train, labels, seed: config.seed },
        {
          onProgress: (done, total) =>
            progress({ stage: "train", done: index + done / total, total: config.layers.length }),
          signal,
        },
      ),
    );
    await clock.measure("artifact", () => writeWeights(input, layer, trained));
    reports.push(report(config, layer, trained));
  }
  return { reports };
}

/** In double precision, so that the file's own arithmetic gives the reported scores. */
function writeWeights(
  { artifacts }: OperationInput<ProbeConfig>,
  layer: number,
  { weight, bias, mean, std }: TrainedProbe,
): Promise<void> {
  const shape = [weight.length];
  return writeNpz(artifacts, `probe-layer-${layer}.npz`, {
    weight: { shape, data: weight },
    bias: { shape: [], data: Float64Array.of(bias) },
    mean: { shape, data: mean },
    std: { shape, data: std },
  });
}

function report(config: ProbeConfig, layer: number, trained: TrainedProbe): ProbeResult["reports"][number] {
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
    scores: config.examples.map(({ text, split, label }, row) => ({
      text,
      split,
      label,
      score: trained.scores[row] as number,
    })),
  };
}
