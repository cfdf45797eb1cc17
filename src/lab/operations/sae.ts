import type { SaeConfig, SaeResult } from "../../contracts/index.js";
import { type TrainedSae, trainSae } from "../../native/index.js";
import { writeNpz } from "../npz.js";
import { writeSafetensors } from "../safetensors.js";
import { exampleFeatures } from "./example-features.js";
import type { Findings, OperationInput } from "./operation.js";

/**
 * Trains a small sparse autoencoder (ReLU encoder, linear decoder, L1) on the final-token block outputs of each
 * selected layer, and reports it on the held-out examples.
 */
export async function sae(input: OperationInput<SaeConfig>): Promise<Findings<SaeResult>> {
  const { config, clock, progress, signal } = input;
  const { byLayer, train } = await exampleFeatures(input);
  const reports: SaeResult["reports"] = [];
  for (const [index, layer] of config.layers.entries()) {
    const features = byLayer.get(layer) as Float32Array;
    const trained = await clock.measure("train", () =>
      trainSae(
        {
          features,
          train,
          seed: config.seed,
          nFeatures: config.features,
          steps: config.steps,
          lossEvery: 10,
        },
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

async function writeWeights(
  { config, artifacts }: OperationInput<SaeConfig>,
  layer: number,
  { weights, mean, scale }: TrainedSae,
): Promise<void> {
  const hidden = mean.length;
  await writeSafetensors(
    artifacts,
    `sae-layer-${layer}.safetensors`,
    {
      "encoder.weight": { shape: [config.features, hidden], data: weights.encoderWeight },
      "encoder.bias": { shape: [config.features], data: weights.encoderBias },
      "decoder.weight": { shape: [hidden, config.features], data: weights.decoderWeight },
      "decoder.bias": { shape: [hidden], data: weights.decoderBias },
    },
    { layer: String(layer), architecture: "relu" },
  );
  await writeNpz(artifacts, `sae-normalization-${layer}.npz`, {
    mean: { shape: [hidden], data: mean },
    scale: { shape: [], data: Float64Array.of(scale) },
  });
}

function report(config: SaeConfig, layer: number, trained: TrainedSae): SaeResult["reports"][number] {
  return {
    layer,
    architecture: "relu",
    held_out_mse: trained.heldOutMse,
    train_mse: trained.trainMse,
    explained_variance: trained.explainedVariance,
    mean_active: trained.meanActive,
    dead_features: trained.deadFeatures,
    dead_fraction: trained.deadFraction,
    losses: trained.losses,
    features: trained.features.map(({ feature, mean, frequency, examples }) => ({
      feature,
      mean,
      frequency,
      examples: examples.map(({ row, activation }) => ({
        text: config.examples[row]?.text as string,
        activation,
      })),
    })),
  };
}
