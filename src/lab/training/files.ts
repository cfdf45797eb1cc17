import { type BlockPoint, pointField, type TargetPoint } from "../../contracts/names.js";
import { transpose } from "../../formats/dictionaries/dictionary.js";
import { dot } from "../../library/index.js";
import type { DictionaryArchitecture, DictionaryWeights } from "../../native/index.js";
import type { Artifacts } from "../artifacts.js";
import { writeNpz } from "../npz.js";
import { writeSafetensors } from "../safetensors.js";

/** A trained dictionary and its origin. */
export interface TrainedDictionary {
  layer: number;
  point: BlockPoint;
  /** The point that a transcoder predicts. */
  target?: TargetPoint | undefined;
  architecture: DictionaryArchitecture;
  k: number;
  weights: DictionaryWeights;
  /** The model's name in its file; empty if there is none. */
  model: string;
  prependBos: boolean;
  /** The first token of each text that it was trained on; default 0. */
  firstPosition?: number | undefined;
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
      ...(weights.skip && { "skip.weight": { shape: [hidden, hidden], data: weights.skip } }),
    },
    {
      layer: String(layer),
      architecture,
      ...(architecture === "topk" || architecture === "batchtopk" ? { k: String(k) } : {}),
      ...pointField(trained.point),
      ...(trained.target && { target: trained.target }),
      ...(trained.firstPosition && { first_position: String(trained.firstPosition) }),
      ...(trained.model === "" ? {} : { model: trained.model }),
    },
  );
  await writeNpz(artifacts, `sae-normalization-${layer}.npz`, {
    mean: { shape: [hidden], data: weights.mean },
    scale: { shape: [], data: Float64Array.of(weights.scale) },
    ...(weights.targetMean && {
      target_mean: { shape: [hidden], data: weights.targetMean },
      target_scale: { shape: [], data: Float64Array.of(weights.targetScale as number) },
    }),
  });
}

/** Whether SAELens has such a dictionary: it has no TopK transcoder with a skip term. */
export function hasSaeLens({
  architecture,
  skip,
}: {
  architecture: DictionaryArchitecture;
  skip?: unknown;
}): boolean {
  return architecture !== "topk" || !skip;
}

/**
 * Writes it in SAELens's format for unscaled activations: `cfg.json` and `sae_weights.safetensors`. BatchTopK
 * thresholds become JumpReLU, as in SAELens itself. SAELens has no class for TopK transcoders, but its TopK autoencoder does
 * the same arithmetic; `hook_name_out` records what it predicts.
 */
export async function writeSaeLens(artifacts: Artifacts, trained: TrainedDictionary): Promise<void> {
  const { layer, architecture, weights, target } = trained;
  const [features, hidden] = [weights.encoderBias.length, weights.mean.length];
  const { mean, scale, skip, targetMean = mean, targetScale = scale } = weights;
  const skipped = skip?.map((value) => (value * targetScale) / scale);
  const rowOf = (matrix: Float32Array, i: number) => matrix.subarray(i * hidden, (i + 1) * hidden);
  // h is of (x - mean) / scale. The decoder takes the scale, so that both layouts give the same activations.
  const encoderBias = weights.encoderBias.map(
    (bias, f) => bias - dot(rowOf(weights.encoder, f), mean) / scale,
  );
  const jumps = architecture === "jumprelu" || architecture === "batchtopk";
  await writeSafetensors(artifacts, "sae_weights.safetensors", {
    W_enc: {
      shape: [hidden, features],
      data: transpose(weights.encoder, features, hidden).map((value) => value / scale),
    },
    b_enc: { shape: [features], data: encoderBias },
    W_dec: { shape: [features, hidden], data: weights.decoder.map((value) => value * targetScale) },
    b_dec: {
      shape: [hidden],
      data: weights.decoderBias.map(
        (value, i) =>
          value * targetScale + (targetMean[i] as number) - (skipped ? dot(rowOf(skipped, i), mean) : 0),
      ),
    },
    ...(skipped && { W_skip: { shape: [hidden, hidden], data: skipped } }),
    ...(jumps && weights.threshold && { threshold: { shape: [features], data: weights.threshold } }),
  });
  const activation = jumps ? "jumprelu" : architecture === "topk" ? "topk" : "standard";
  const transcoder = `${activation === "standard" ? "" : `${activation}_`}${skip ? "skip_" : ""}transcoder`;
  const isTranscoder = target !== undefined && architecture !== "topk";
  const config = {
    d_in: hidden,
    d_sae: features,
    ...(isTranscoder && { d_out: hidden }),
    dtype: "float32",
    device: "cpu",
    apply_b_dec_to_input: false,
    normalize_activations: "none",
    reshape_activations: "none",
    architecture: isTranscoder ? transcoder : activation,
    ...(architecture === "topk" && { k: trained.k, rescale_acts_by_decoder_norm: false }),
    metadata: {
      sae_lens_version: "6.0.0",
      sae_lens_training_version: null,
      hook_name: `blocks.${layer}.${hooks[trained.point]}`,
      ...(target && { hook_name_out: `blocks.${layer}.${hooks[target]}` }),
      model_name: trained.model,
      prepend_bos: trained.prependBos,
      // SAELens's slice of the tokens that it trains on.
      ...(trained.firstPosition && { seqpos_slice: [trained.firstPosition, null] }),
    },
  };
  await artifacts.create("cfg.json", (file) =>
    file.write(Buffer.from(`${JSON.stringify(config, null, 2)}\n`), 0),
  );
}
