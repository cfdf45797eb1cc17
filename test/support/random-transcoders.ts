import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { TestRandom } from "./random.js";

/** A transcoder in circuit-tracer's arrays; matrices are [features, width], `skip` [width, width]. */
export interface RandomTranscoder {
  width: number;
  features: number;
  encoder: Float32Array;
  decoder: Float32Array;
  encoderBias: Float32Array;
  decoderBias: Float32Array;
  threshold?: Float32Array;
  skip?: Float32Array;
}

/** Random weights; about a tenth of the features is active where rows have a length of about sqrt(width). */
export function randomTranscoder(
  seed: number,
  {
    width,
    features,
    skip = false,
    jump = true,
  }: { width: number; features: number; skip?: boolean; jump?: boolean },
): RandomTranscoder {
  const random = new TestRandom(seed);
  const numbers = (length: number, scale: number) =>
    Float32Array.from({ length }, () => (2 * random.uniform() - 1) * scale);
  const scale = Math.sqrt(3 / width);
  return {
    ...{ width, features },
    encoder: numbers(features * width, scale),
    decoder: numbers(features * width, 0.3 * scale),
    encoderBias: numbers(features, 0.2),
    decoderBias: numbers(width, 0.1),
    ...(jump && { threshold: numbers(features, 0.3).map((value) => 1.2 + Math.abs(value)) }),
    ...(skip && { skip: numbers(width * width, 0.2 * scale) }),
  };
}

/** Writes `layer_N.safetensors` of a set. */
export function writeTranscoder(folder: string, layer: number, one: RandomTranscoder): void {
  const { width, features } = one;
  const vector = (data: Float32Array) => ({ shape: [data.length], data });
  const arrays = {
    W_enc: { shape: [features, width], data: one.encoder },
    W_dec: { shape: [features, width], data: one.decoder },
    b_enc: vector(one.encoderBias),
    b_dec: vector(one.decoderBias),
    ...(one.threshold && { "activation_function.threshold": vector(one.threshold) }),
    ...(one.skip && { W_skip: { shape: [width, width], data: one.skip } }),
  };
  writeFileSync(join(folder, `layer_${layer}.safetensors`), encodeSafetensors(arrays));
}

/**
 * Writes a cross-layer transcoder of random weights in circuit-tracer's layout, `W_enc_N.safetensors` and `W_dec_N.safetensors` of
 * each block and `config.yaml`.
 */
export function writeCrossLayer(
  folder: string,
  {
    width,
    features,
    blocks,
    jump = true,
    ...hooks
  }: {
    width: number;
    features: number;
    blocks: number;
    jump?: boolean;
    input?: string;
    output?: string;
  },
): void {
  writeSetConfig(folder, { kind: "cross_layer_transcoder", ...hooks });
  for (let layer = 0; layer < blocks; layer++) {
    const count = blocks - layer;
    const one = randomTranscoder(layer + 100, { width, features, jump });
    const { decoder } = randomTranscoder(layer + 200, { width, features: features * count });
    const vector = (data: Float32Array) => ({ shape: [data.length], data });
    const arrays = {
      [`W_enc_${layer}`]: { shape: [features, width], data: one.encoder },
      [`b_enc_${layer}`]: vector(one.encoderBias),
      [`b_dec_${layer}`]: vector(one.decoderBias),
      ...(one.threshold && { [`threshold_${layer}`]: vector(one.threshold) }),
    };
    writeFileSync(join(folder, `W_enc_${layer}.safetensors`), encodeSafetensors(arrays));
    const written = { [`W_dec_${layer}`]: { shape: [features, count, width], data: decoder } };
    writeFileSync(join(folder, `W_dec_${layer}.safetensors`), encodeSafetensors(written));
  }
}

/** Writes the description of a set. */
export function writeSetConfig(
  folder: string,
  {
    kind = "transcoder_set",
    input = "mlp.hook_in",
    output = "hook_mlp_out",
  }: { kind?: string; input?: string; output?: string } = {},
): void {
  const lines = [`model_kind: ${kind}`, `feature_input_hook: "${input}"`, `feature_output_hook: "${output}"`];
  writeFileSync(join(folder, "config.yaml"), `${lines.join("\n")}\n`);
}
