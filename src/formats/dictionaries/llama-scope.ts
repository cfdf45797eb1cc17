import { FormatError, quoted } from "../format-error.js";
import {
  Arrays,
  foldDecoderLengths,
  linearMaps,
  numberOf,
  type ReadLayout,
  scaleRows,
  settingsOf,
  type TensorSource,
  textOf,
} from "./dictionary.js";
import { dictionaryBetween } from "./transcoder.js";

/**
 * Reads a dictionary of Llama Scope: `hyperparams.json` and `final.safetensors` with encoder.weight [F, d],
 * decoder.weight [d, F]. As in its publisher's loader, the data set's average norms are folded in, then the norms of
 * the decoder's columns; the threshold applies to the result. (Layout: He et al. 2024, "Llama Scope"; OpenMOSS
 * Language-Model-SAEs, 2024-11.)
 * @throws FormatError
 */
export async function readLlamaScope(config: unknown, source: TensorSource): Promise<ReadLayout> {
  const settings = settingsOf(config, "hyperparams.json");
  const hook = textOf(settings, "hook_point_in");
  if (hook === undefined) throw new FormatError("hyperparams.json lacks hook_point_in.");
  const out = textOf(settings, "hook_point_out") ?? hook;
  const place = dictionaryBetween(hook, out);
  const act = textOf(settings, "act_fn") ?? "jumprelu";
  if (!["jumprelu", "topk"].includes(act)) {
    throw new FormatError(
      `act_fn is ${quoted(act)}; this layout supports jumprelu, and topk converted to it.`,
    );
  }
  const threshold = numberOf(settings, "jump_relu_threshold");
  if (threshold === undefined || threshold < 0) {
    throw new FormatError(
      `jump_relu_threshold is ${threshold ?? "missing"}; it must be a number of at least 0.`,
    );
  }
  const norms = settingsOf(settings.dataset_average_activation_norm, "dataset_average_activation_norm");
  const [normIn, normOut] = [numberOf(norms, "in"), numberOf(norms, "out")];
  if (normIn === undefined || normOut === undefined || !(normIn > 0 && normOut > 0)) {
    throw new FormatError(
      "dataset_average_activation_norm in hyperparams.json must have positive `in` and `out`.",
    );
  }
  const parts = await new Arrays(source, "Llama Scope").weights(linearMaps);
  const { features, hidden } = parts;
  const into = Math.sqrt(hidden) / normIn;
  const outOf = Math.sqrt(hidden) / normOut;
  scaleRows(parts.encoderBias, new Float64Array(features).fill(1 / into));
  scaleRows(parts.decoder, new Float64Array(features).fill(into / outOf));
  scaleRows(parts.decoderBias, new Float64Array(hidden).fill(1 / outOf));
  foldDecoderLengths(parts);
  return {
    layout: "Llama Scope",
    activation: "jumprelu",
    ...parts,
    threshold: new Float32Array(features).fill(threshold),
    ...place,
    notes: act === "topk" ? ["Trained with top-k; read with the threshold its publisher uses."] : [],
  };
}
