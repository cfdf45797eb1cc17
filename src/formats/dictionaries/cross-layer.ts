import { FormatError } from "../format-error.js";
import { describedSet, thresholdsOf, topLevel } from "./circuit-tracer.js";
import { Arrays, type ReadLayout, type TensorSource } from "./dictionary.js";

const layout = "circuit-tracer's cross-layer transcoder";
/** The weights of a block's encoder, and its number. */
const encoders = /^W_enc_(\d{1,3})\.safetensors$/;

/** The file of a block's decoders, beside its encoder's; undefined for other files. */
export function decodersBeside(encoder: string): string | undefined {
  const [, layer] = encoders.exec(encoder) ?? [];
  return layer === undefined ? undefined : `W_dec_${layer}.safetensors`;
}

/** The encoders of a cross-layer transcoder's blocks. */
export const blocksAmong = (names: readonly string[]): string[] =>
  names.includes("config.yaml") ? names.filter((name) => encoders.test(name)) : [];

/**
 * Reads one block of a cross-layer transcoder of L blocks that circuit-tracer loads: `config.yaml`, `W_enc_N.safetensors` with
 * W_enc_N [F, d], b_enc_N, b_dec_N and, for JumpReLU, threshold_N, and `W_dec_N.safetensors` with W_dec_N [F, L - N, d]: what
 * each feature writes into blocks N to L - 1. b_dec_N is of what all blocks write into block N.
 * @throws FormatError
 */
export async function readCrossLayer(
  config: string,
  [encoder, decoder]: readonly [TensorSource, TensorSource],
  file: string,
): Promise<ReadLayout> {
  const layer = Number(encoders.exec(file)?.[1]);
  const described = describedSet(topLevel(config), "cross_layer_transcoder", layer);
  const arrays = new Arrays(encoder, layout);
  const [features, hidden] = arrays.matrix(`W_enc_${layer}`);
  const decoders = new Arrays(decoder, layout);
  const written = `W_dec_${layer}`;
  const blocks = decoders.shape(written)[1] ?? 0;
  if (blocks === 0) {
    const shape = decoders.shape(written).join(", ");
    throw new FormatError(`${written} has the shape [${shape}]; expected [${features}, blocks, ${hidden}].`);
  }
  const name = `threshold_${layer}`;
  const threshold = arrays.has(name) ? await thresholdsOf(arrays, name, features) : undefined;
  return {
    ...{ layout, hidden, features, blocks },
    encoder: await arrays.read(`W_enc_${layer}`, features, hidden),
    encoderBias: await arrays.read(`b_enc_${layer}`, features),
    decoder: decoders.stream(written, features, blocks, hidden),
    decoderBias: await arrays.read(`b_dec_${layer}`, hidden),
    activation: threshold === undefined ? "relu" : "jumprelu",
    ...(threshold && { threshold }),
    ...described,
  };
}
