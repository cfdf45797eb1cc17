import { FormatError, told } from "../format-error.js";
import {
  Arrays,
  checkedK,
  type Dictionary,
  flagOf,
  numberOf,
  settingsOf,
  type TensorSource,
  textOf,
} from "./dictionary.js";

/**
 * Reads a dictionary of EleutherAI's sparsify: `cfg.json` and `sae.safetensors` with encoder.weight [F, d], W_dec
 * [F, d]; the k largest of max(h, 0), b_dec taken from the input. Its folder's name is the module whose output it
 * reads, so the file itself says no layer.
 * @throws FormatError
 */
export async function readSparsify(config: unknown, source: TensorSource): Promise<Dictionary> {
  const settings = settingsOf(config, "cfg.json");
  const activation = textOf(settings, "activation") ?? "topk";
  if (activation !== "topk") {
    throw new FormatError(`The activation ${told(activation)} is not read in this layout; topk is.`);
  }
  const arrays = new Arrays(source, "sparsify");
  if (flagOf(settings, "transcode") || flagOf(settings, "skip_connection") || arrays.has("W_skip")) {
    throw new FormatError("The dictionary is a transcoder; only autoencoders are read.");
  }
  const [features, hidden] = arrays.matrix("encoder.weight");
  return {
    layout: "sparsify",
    activation: "topk",
    k: checkedK(numberOf(settings, "k") ?? 32, features),
    hidden,
    features,
    encoder: await arrays.read("encoder.weight", features, hidden),
    encoderBias: await arrays.read("encoder.bias", features),
    decoder: await arrays.read("W_dec", features, hidden),
    decoderBias: await arrays.read("b_dec", hidden),
    rowScaling: "none",
    subtractBias: true,
    origin: {},
    notes: [],
  };
}
