import { FormatError, quoted } from "../format-error.js";
import {
  Arrays,
  checkedK,
  flagOf,
  linearMaps,
  numberOf,
  type ReadLayout,
  settingsOf,
  type TensorSource,
  textOf,
} from "./dictionary.js";

/**
 * Reads a dictionary of EleutherAI's sparsify: `cfg.json` and `sae.safetensors` with encoder.weight [F, d], W_dec [F,
 * d]; the k largest of max(h, 0), b_dec subtracted from the input. The folder's name is the module whose output it
 * reads, so the file does not record the layer. Of transcoders, those of MLPs are supported.
 * @throws FormatError
 */
export async function readSparsify(config: unknown, source: TensorSource): Promise<ReadLayout> {
  const settings = settingsOf(config, "cfg.json");
  const activation = textOf(settings, "activation") ?? "topk";
  if (activation !== "topk") {
    throw new FormatError(
      `The activation ${quoted(activation)} is not supported in this layout; only topk is.`,
    );
  }
  const arrays = new Arrays(source, "sparsify");
  const transcoder = flagOf(settings, "transcode") ?? false;
  if (!transcoder && arrays.has("W_skip")) {
    throw new FormatError(
      "The dictionary has a skip connection, but cfg.json does not say that it transcodes.",
    );
  }
  const weights = await arrays.weights({
    ...linearMaps,
    ...{ decoder: "W_dec", decoderBias: "b_dec", transposed: "neither" },
  });
  return {
    layout: "sparsify",
    activation: "topk",
    k: checkedK(numberOf(settings, "k") ?? 32, weights.features),
    ...weights,
    subtractBias: !transcoder,
    // A transcoder's folder is named after a module; it reads that module's input and predicts its output.
    ...(transcoder && { transcoder, origin: { point: "ffn_in", writes: "ffn_out" } }),
    ...(arrays.has("W_skip") && { skip: await arrays.read("W_skip", weights.hidden, weights.hidden) }),
  };
}
