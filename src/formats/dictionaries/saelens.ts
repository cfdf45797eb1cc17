import { FormatError, quoted } from "../format-error.js";
import {
  type Activation,
  Arrays,
  checkedK,
  type Dictionary,
  type DictionaryOrigin,
  factors,
  flagOf,
  foldDecoderLengths,
  numberOf,
  placeOfHook,
  type ReadLayout,
  type RowScaling,
  type Settings,
  scaleRows,
  settingsOf,
  type TensorSource,
  textOf,
} from "./dictionary.js";
import { transcoderBetween } from "./transcoder.js";

/** The settings in `cfg.json` of version 6 and earlier, with version 6's names. */
interface SaeLensSettings {
  version: number;
  architecture: string;
  normalisation: string;
  reshape: string;
  subtractBias: boolean;
  k: number | undefined;
  rescale: boolean | undefined;
  hidden: number | undefined;
  features: number | undefined;
  out: number | undefined;
  origin: DictionaryOrigin & { hook: string };
  /** Where a transcoder writes. */
  hookOut: string | undefined;
}

/**
 * Reads a dictionary as SAELens saves it: `cfg.json`, `sae_weights.safetensors` with W_enc [d, F], W_dec [F, d].
 * (Layout: SAELens 3 to 6, its `saes` classes.)
 * @throws FormatError
 */
export async function readSaeLens(config: unknown, source: TensorSource): Promise<ReadLayout> {
  const settings = settingsFrom(settingsOf(config, "cfg.json"));
  const { origin, hookOut } = settings;
  // SAELens has no class for TopK transcoders: a TopK autoencoder that names another hook as its output is one.
  const writesElsewhere = hookOut !== undefined && hookOut !== "" && hookOut !== origin.hook;
  const isTranscoder =
    settings.architecture.includes("transcoder") || (settings.architecture === "topk" && writesElsewhere);
  const architecture = withoutTranscoder(settings.architecture);
  if (settings.reshape !== "none") {
    throw new FormatError(
      `The dictionary reads ${quoted(origin.hook)} reshaped as ${quoted(settings.reshape)}; single heads are not supported.`,
    );
  }
  if (isTranscoder && hookOut === undefined)
    throw new FormatError("cfg.json lacks hook_name_out, the hook point that the transcoder writes.");
  const place = isTranscoder
    ? transcoderBetween(origin.hook, hookOut as string)
    : { origin: placeOfHook(origin.hook), rowScaling: scalingOf(settings.normalisation) };
  const arrays = new Arrays(source, "SAELens");
  const [hidden, features] = arrays.matrix("W_enc");
  for (const [name, said, found] of [
    ["d_in", settings.hidden, hidden],
    ["d_sae", settings.features, features],
  ] as const) {
    if (said !== undefined && said !== found) {
      throw new FormatError(
        `In cfg.json ${name} is ${said}, but W_enc has the shape [${hidden}, ${features}].`,
      );
    }
  }
  if (settings.out !== undefined && settings.out !== hidden) {
    throw new FormatError(
      `The dictionary reads ${hidden} values and writes ${settings.out}; only equal widths are supported.`,
    );
  }
  if (isTranscoder && settings.normalisation !== "none") {
    throw new FormatError(
      `normalize_activations is ${quoted(settings.normalisation)}; transcoders are supported with none.`,
    );
  }
  const notes: string[] = [];
  const parts = await arrays.weights({
    ...factors,
    encoderBias: architecture === "gated" ? "b_gate" : "b_enc",
  });
  const specific = await activationOf(arrays, { ...settings, architecture }, features);
  // Thresholds of training checkpoints also apply to h times the decoder's norms; saving for inference folds these
  // in.
  const checkpoint = arrays.has("topk_threshold");
  if ((settings.rescale ?? checkpoint) && (specific.activation === "topk" || checkpoint)) {
    foldDecoderLengths(parts);
  }
  if (arrays.has("scaling_factor")) {
    const scaling = await arrays.read("scaling_factor", features);
    // Up to version 5, finetuning factors scale the decoder; the classes of version 6 ignore them.
    if (settings.version < 6) scaleRows(parts.decoder, scaling);
    else if (scaling.some((factor) => factor !== 1)) {
      notes.push("The file's scaling_factor is ignored, as in SAELens 6.");
    }
  }
  if (settings.normalisation === "expected_average_only_in") {
    notes.push(
      "It was trained on activations scaled to an average norm. If that scale is not folded into its weights, it does not fit raw activations: check the explained variance.",
    );
  }
  return {
    layout: "SAELens",
    ...parts,
    ...specific,
    ...place,
    // Transcoders never subtract it: it belongs to the output.
    subtractBias: settings.subtractBias && !isTranscoder,
    ...(arrays.has("W_skip") && isTranscoder && { skip: await arrays.read("W_skip", hidden, hidden) }),
    origin: { ...origin, ...place.origin },
    notes,
  };
}

/** The architecture of a transcoder's activation. */
function withoutTranscoder(architecture: string): string {
  const name = architecture.replace(/_?(skip_)?transcoder$/, "");
  return name === "" ? "standard" : name;
}

async function activationOf(
  arrays: Arrays,
  { architecture, k }: SaeLensSettings,
  features: number,
): Promise<Pick<Dictionary, "activation" | "k" | "threshold" | "gain" | "magnitudeBias">> {
  const jump = (threshold: Float32Array) => ({ activation: "jumprelu" as Activation, k: 0, threshold });
  switch (architecture) {
    case "standard":
      return { activation: "relu", k: 0 };
    case "topk":
      return { activation: "topk", k: checkedK(k, features) };
    case "jumprelu":
      return jump(await thresholdOf(arrays, features));
    case "batchtopk":
    case "matryoshka_batchtopk":
    case "matryoshka":
      // Finished ones are saved as jumprelu; checkpoints have one threshold for all features.
      if (!arrays.has("topk_threshold")) return jump(await thresholdOf(arrays, features));
      return jump(new Float32Array(features).fill(await arrays.scalar("topk_threshold")));
    case "gated":
      return {
        activation: "gated",
        k: 0,
        gain: (await arrays.read("r_mag", features)).map(Math.exp),
        magnitudeBias: await arrays.read("b_mag", features),
      };
    default:
      throw new FormatError(
        `The architecture ${quoted(architecture)} is not supported; standard, topk, batchtopk, matryoshka_batchtopk, jumprelu and gated are.`,
      );
  }
}

async function thresholdOf(arrays: Arrays, features: number): Promise<Float32Array> {
  if (arrays.has("threshold")) return arrays.read("threshold", features);
  return (await arrays.read("log_threshold", features)).map(Math.exp);
}

function scalingOf(normalisation: string): RowScaling {
  switch (normalisation) {
    case "none":
    case "expected_average_only_in":
      return "none";
    case "constant_norm_rescale":
      return "constant_norm";
    case "layer_norm":
      return "layer_norm";
    default:
      throw new FormatError(
        `normalize_activations is ${quoted(normalisation)}; none, expected_average_only_in, constant_norm_rescale ` +
          "and layer_norm are supported.",
      );
  }
}

function settingsFrom(settings: Settings): SaeLensSettings {
  const metadata = settings.metadata === undefined ? settings : settingsOf(settings.metadata, "metadata");
  const version = textOf(metadata, "sae_lens_version") ?? textOf(settings, "sae_lens_version") ?? "0";
  const hook = textOf(metadata, "hook_name", "hook_point");
  if (hook === undefined) throw new FormatError("cfg.json lacks hook_name, the hook point.");
  const [activation, kOld] = oldActivation(settings);
  const given = textOf(settings, "architecture") ?? "standard";
  const normalised = settings.normalize_activations;
  const model = textOf(metadata, "model_name");
  return {
    version: Number.parseInt(version, 10) || 0,
    architecture: activation === "topk" && given === "standard" ? "topk" : given,
    normalisation:
      normalised === true
        ? "expected_average_only_in"
        : normalised === false || normalised === null
          ? "none"
          : (textOf(settings, "normalize_activations") ?? "none"),
    reshape: textOf(settings, "reshape_activations") ?? (hook.includes("hook_z") ? "hook_z" : "none"),
    subtractBias: flagOf(settings, "apply_b_dec_to_input") ?? true,
    k: numberOf(settings, "k") ?? kOld,
    rescale: flagOf(settings, "rescale_acts_by_decoder_norm"),
    hidden: numberOf(settings, "d_in"),
    features: numberOf(settings, "d_sae"),
    out: numberOf(settings, "d_out"),
    hookOut: textOf(metadata, "hook_name_out", "hook_point_out") ?? textOf(settings, "hook_name_out"),
    origin: {
      hook,
      ...(model !== undefined && { model }),
      prependBos: flagOf(metadata, "prepend_bos") ?? true,
      ...firstTokens(metadata.seqpos_slice),
    },
  };
}

/** The tokens before the slice of each text that was trained on. */
function firstTokens(slice: unknown): Pick<DictionaryOrigin, "zeroPositions"> {
  const first: unknown = Array.isArray(slice) ? slice[0] : undefined;
  return Number.isInteger(first) && (first as number) > 0 ? { zeroPositions: first as number } : {};
}

/** Before version 6, the activation was a separate setting. */
function oldActivation(settings: Settings): [name: string, k: number | undefined] {
  const name = textOf(settings, "activation_fn", "activation_fn_str") ?? "relu";
  if (name !== "relu" && name !== "topk") {
    throw new FormatError(`The activation ${quoted(name)} is not supported; relu and topk are.`);
  }
  const extra = settings.activation_fn_kwargs;
  const k =
    extra === undefined || extra === null
      ? undefined
      : numberOf(settingsOf(extra, "activation_fn_kwargs"), "k");
  return [name, k];
}
