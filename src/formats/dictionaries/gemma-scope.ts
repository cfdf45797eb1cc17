import { FormatError, quoted } from "../format-error.js";
import { Arrays, factors, type ReadLayout, settingsOf, type TensorSource, textOf } from "./dictionary.js";
import { dictionaryBetween } from "./transcoder.js";

/**
 * Reads a dictionary of Gemma Scope: `params.npz` of the first (W_enc, W_dec), `params.safetensors` with
 * `config.json` of the second (w_enc, w_dec). JumpReLU, no bias subtracted from the input, no scaling. (Layout:
 * Lieberum et al. 2024, google/gemma-scope; google/gemma-scope-2.)
 * @param config of `config.json`; undefined if there is none
 * @throws FormatError
 */
export async function readGemmaScope(config: unknown, source: TensorSource): Promise<ReadLayout> {
  const arrays = new Arrays(source, "Gemma Scope");
  const settings = config === undefined ? {} : settingsOf(config, "config.json");
  const architecture = textOf(settings, "architecture") ?? "jump_relu";
  if (architecture !== "jump_relu") {
    throw new FormatError(
      `The architecture ${quoted(architecture)} is not supported in this layout; only jump_relu is.`,
    );
  }
  const into = textOf(settings, "hf_hook_point_in");
  const out = textOf(settings, "hf_hook_point_out") ?? into;
  const affine = arrays.has("affine_skip_connection");
  if (affine && into === out) {
    throw new FormatError(
      "The file has an affine_skip_connection, but config.json does not say what it reads and writes.",
    );
  }
  const place = into === undefined ? undefined : dictionaryBetween(into, out as string);
  const second = arrays.has("w_enc");
  const weights = await arrays.weights(second ? { ...factors, encoder: "w_enc", decoder: "w_dec" } : factors);
  const model = textOf(settings, "model_name");
  return {
    layout: second ? "Gemma Scope 2" : "Gemma Scope",
    activation: "jumprelu",
    ...weights,
    ...place,
    // Applied as x @ affine_skip_connection: a column per output.
    ...(affine && {
      skip: await arrays.transposed("affine_skip_connection", weights.hidden, weights.hidden),
    }),
    threshold: await arrays.read("threshold", weights.features),
    origin: {
      ...place?.origin,
      ...(model !== undefined && { model }),
      prependBos: true,
    },
  };
}
