import { type BlockPoint, pointField } from "../../contracts/names.js";
import { transpose } from "../../formats/dictionaries/dictionary.js";
import type { DictionaryArchitecture, DictionaryWeights } from "../../native/index.js";
import type { Artifacts } from "../artifacts.js";
import { writeNpz } from "../npz.js";
import { writeSafetensors } from "../safetensors.js";

/** A trained dictionary and its origin. */
export interface TrainedDictionary {
  layer: number;
  point: BlockPoint;
  architecture: DictionaryArchitecture;
  k: number;
  weights: DictionaryWeights;
  /** The model's name in its file; empty if there is none. */
  model: string;
  prependBos: boolean;
}

/** The hook of TransformerLens at a point of a block. */
const hooks: Readonly<Record<BlockPoint, string>> = {
  block_in: "hook_resid_pre",
  attn_out: "hook_attn_out",
  mid: "hook_resid_mid",
  ffn_in: "mlp.hook_in",
  ffn_out: "hook_mlp_out",
  block_out: "hook_resid_post",
};

/**
 * Writes a dictionary as the Lab writes those of {@link trainSae}: `sae-layer-<n>.safetensors` on (x - mean) / scale, and
 * `sae-normalization-<n>.npz`.
 */
export async function writeOwn(artifacts: Artifacts, trained: TrainedDictionary): Promise<void> {
  const { layer, architecture, k, weights } = trained;
  const [features, hidden] = [weights.encoderBias.length, weights.mean.length];
  await writeSafetensors(
    artifacts,
    `sae-layer-${layer}.safetensors`,
    {
      "encoder.weight": { shape: [features, hidden], data: weights.encoder },
      "encoder.bias": { shape: [features], data: weights.encoderBias },
      "decoder.weight": { shape: [hidden, features], data: transpose(weights.decoder, features, hidden) },
      "decoder.bias": { shape: [hidden], data: weights.decoderBias },
      ...(weights.threshold && { threshold: { shape: [features], data: weights.threshold } }),
    },
    {
      layer: String(layer),
      architecture,
      ...(architecture === "topk" || architecture === "batchtopk" ? { k: String(k) } : {}),
      ...pointField(trained.point),
      ...(trained.model === "" ? {} : { model: trained.model }),
    },
  );
  await writeNpz(artifacts, `sae-normalization-${layer}.npz`, {
    mean: { shape: [hidden], data: weights.mean },
    scale: { shape: [], data: Float64Array.of(weights.scale) },
  });
}

/**
 * Writes it in SAELens's format for unscaled activations: `cfg.json` and `sae_weights.safetensors`. BatchTopK
 * thresholds become JumpReLU, as in SAELens itself.
 */
export async function writeSaeLens(artifacts: Artifacts, trained: TrainedDictionary): Promise<void> {
  const { layer, architecture, weights } = trained;
  const [features, hidden] = [weights.encoderBias.length, weights.mean.length];
  const { mean, scale } = weights;
  // h is of (x - mean) / scale. The decoder takes the scale, so that both layouts give the same activations.
  const encoderBias = weights.encoderBias.map((bias, feature) => {
    let sum = 0;
    for (let i = 0; i < hidden; i++) {
      sum += (weights.encoder[feature * hidden + i] as number) * (mean[i] as number);
    }
    return bias - sum / scale;
  });
  const jumps = architecture === "jumprelu" || architecture === "batchtopk";
  await writeSafetensors(artifacts, "sae_weights.safetensors", {
    W_enc: {
      shape: [hidden, features],
      data: transpose(weights.encoder, features, hidden).map((value) => value / scale),
    },
    b_enc: { shape: [features], data: encoderBias },
    W_dec: { shape: [features, hidden], data: weights.decoder.map((value) => value * scale) },
    b_dec: {
      shape: [hidden],
      data: weights.decoderBias.map((value, i) => value * scale + (mean[i] as number)),
    },
    ...(jumps && weights.threshold && { threshold: { shape: [features], data: weights.threshold } }),
  });
  const config = {
    d_in: hidden,
    d_sae: features,
    dtype: "float32",
    device: "cpu",
    apply_b_dec_to_input: false,
    normalize_activations: "none",
    reshape_activations: "none",
    architecture: jumps ? "jumprelu" : architecture === "topk" ? "topk" : "standard",
    ...(architecture === "topk" && { k: trained.k, rescale_acts_by_decoder_norm: false }),
    metadata: {
      sae_lens_version: "6.0.0",
      sae_lens_training_version: null,
      hook_name: `blocks.${layer}.${hooks[trained.point]}`,
      model_name: trained.model,
      prepend_bos: trained.prependBos,
    },
  };
  await artifacts.create("cfg.json", (file) =>
    file.write(Buffer.from(`${JSON.stringify(config, null, 2)}\n`), 0),
  );
}
