import type { SaeConfig, SaeResult } from "../../contracts/index.js";
import { pointField } from "../../contracts/names.js";
import { writeNpz } from "../../lab/npz.js";
import type { SaeExamplesConfig } from "../../lab/rows/example-features.js";
import { trainLayers } from "../../lab/rows/train-layers.js";
import { writeSafetensors } from "../../lab/safetensors.js";
import { type TrainedSae, trainSae } from "../../native/index.js";
import type { Findings, OperationInput, Run } from "../run.js";

const constantNote = "The held-out block outputs are identical, so there is no variance to explain.";

/**
 * Trains a sparse autoencoder on the block outputs of each selected layer, and evaluates it on held-out data. By default a
 * small one (ReLU encoder, linear decoder, L1) on one activation per example, all in one batch.
 */
export async function sae(input: OperationInput<SaeConfig>): Promise<Findings<SaeResult>> {
  const { config } = input;
  if (!isSmall(config)) {
    const { batchSae } = await import("./run-in-batches.js");
    return batchSae(input);
  }
  const { features: nFeatures, steps, seed } = config;
  const small = { ...input, config };
  const reports = await trainLayers(small, {
    train: ({ excluded: _, ...data }, options) =>
      trainSae({ ...data, seed, nFeatures, steps, lossEvery: 10 }, options),
    write: (layer, trained) => writeWeights(small, layer, trained),
    report: (layer, trained, { excluded }) => ({
      ...report(config, layer, trained),
      ...(excluded && { excluded }),
    }),
  });
  return { ...(config.point && { point: config.point }), ...(config.rows && { rows: config.rows }), reports };
}

/** Whether it can be trained in one batch: an autoencoder on one activation per example, ReLU, no settings for batches. */
function isSmall(config: SaeConfig): config is SaeExamplesConfig {
  const { examples, architecture, rows, target, batch, learning_rate, warmup, decay, sparsity } = config;
  const batched = [batch, learning_rate, warmup, decay, sparsity].some((value) => value !== undefined);
  const reconstructs = (architecture ?? "relu") === "relu" && target === undefined;
  return examples !== undefined && reconstructs && rows !== "all" && !batched;
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
    { layer: String(layer), architecture: "relu", ...pointField(config.point) },
  );
  await writeNpz(artifacts, `sae-normalization-${layer}.npz`, {
    mean: { shape: [hidden], data: mean },
    scale: { shape: [], data: Float64Array.of(scale) },
  });
}

function report(config: SaeExamplesConfig, layer: number, trained: TrainedSae): SaeResult["reports"][number] {
  return {
    layer,
    architecture: "relu",
    held_out_mse: trained.heldOutMse,
    train_mse: trained.trainMse,
    explained_variance: Number.isNaN(trained.explainedVariance) ? null : trained.explainedVariance,
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
    ...(Number.isNaN(trained.explainedVariance) && { note: constantNote }),
  };
}

export default {
  run: sae,
} satisfies Run<"sae">;
