import { FormatError, quoted } from "../format-error.js";
import {
  Arrays,
  checkedK,
  type Dictionary,
  factors,
  type ReadLayout,
  type Settings,
  type TensorSource,
  textOf,
} from "./dictionary.js";
import { transcoderBetween } from "./transcoder.js";

/**
 * Reads a transcoder of a set that circuit-tracer loads: `config.yaml` and `layer_N.safetensors` with W_enc [F, d], W_dec
 * [F, d], optionally W_skip [d, d]. JumpReLU with `activation_function.threshold`; TopK without a ReLU, as it is
 * computed there; otherwise ReLU.
 * @param file the name of the weights, which has the block
 * @throws FormatError
 */
export async function readCircuitTracer(
  config: string,
  source: TensorSource,
  file: string,
): Promise<ReadLayout> {
  const layer = Number(/^layer_(\d{1,3})\./.exec(file)?.[1]);
  const settings = topLevel(config);
  const described = describedSet(settings, "transcoder_set", layer);
  const arrays = new Arrays(source, "circuit-tracer");
  const weights = await arrays.weights({ ...factors, transposed: "neither" });
  const { features, hidden } = weights;
  return {
    layout: "circuit-tracer",
    ...weights,
    ...(await activationOf(arrays, settings, features)),
    ...(arrays.has("W_skip") && { skip: await arrays.read("W_skip", hidden, hidden) }),
    ...described,
  };
}

/**
 * What a set's `config.yaml` says of a block's transcoder.
 * @param settings see {@link topLevel}
 * @param kind the kind of set that the other files are of
 * @throws FormatError if it is of another kind
 */
export function describedSet(
  settings: Settings,
  kind: "transcoder_set" | "cross_layer_transcoder",
  layer: number,
): ReturnType<typeof transcoderBetween> {
  const stated = textOf(settings, "model_kind") ?? kind;
  if (stated !== kind) {
    throw new FormatError(`model_kind is ${quoted(stated)}, but the files are those of a ${kind}.`);
  }
  const [from, to] = [textOf(settings, "feature_input_hook"), textOf(settings, "feature_output_hook")];
  if (from === undefined || to === undefined) {
    throw new FormatError("config.yaml lacks feature_input_hook or feature_output_hook.");
  }
  const place = transcoderBetween(`blocks.${layer}.${from}`, `blocks.${layer}.${to}`);
  const model = textOf(settings, "model_name");
  return {
    ...place,
    origin: {
      ...place.origin,
      ...(model !== undefined && { model }),
      prependBos: true,
      zeroPositions: zeroPositionsOf(model),
    },
  };
}

/** As circuit-tracer has it: the first turn's tokens of Gemma 3's instruct models, otherwise BOS. */
export function zeroPositionsOf(model = ""): number {
  return /gemma-3-.*-it$/.test(model) ? 4 : 1;
}

async function activationOf(
  arrays: Arrays,
  settings: Settings,
  features: number,
): Promise<Pick<Dictionary, "activation" | "k" | "threshold">> {
  const threshold = "activation_function.threshold";
  if (arrays.has(threshold)) {
    const shape = arrays.shape(threshold);
    const one = shape.length === 0 || (shape.length === 1 && shape[0] === 1 && features !== 1);
    const values = one
      ? new Float32Array(features).fill(await arrays.scalar(threshold))
      : await arrays.read(threshold, features);
    return { activation: "jumprelu", k: 0, threshold: checkedThresholds(values) };
  }
  const name = (textOf(settings, "activation", "activation_function") ?? "relu").toLowerCase();
  if (name === "topk") {
    return { activation: "topk_raw", k: checkedK(Number(textOf(settings, "k") ?? Number.NaN), features) };
  }
  if (name === "relu") return { activation: "relu", k: 0 };
  throw new FormatError(
    `The activation ${quoted(name)} is not supported in this layout; relu, topk and jumprelu with thresholds are.`,
  );
}

/** The thresholds of all features. @throws FormatError */
export async function thresholdsOf(arrays: Arrays, name: string, features: number): Promise<Float32Array> {
  return checkedThresholds(await arrays.read(name, features));
}

function checkedThresholds(values: Float32Array): Float32Array {
  if (values.some((value) => value < 0)) {
    throw new FormatError("A threshold is negative, so that features would have negative activations.");
  }
  return values;
}

/** The plain values of a YAML file's first level, as texts; nested ones are left out. */
export function topLevel(yaml: string): Settings {
  const found: Record<string, string> = {};
  for (const line of yaml.split("\n")) {
    const [, name, quotedValue, value] =
      /^(\w{1,64}):\s+(?:["']([^"']*)["']|([^#\s][^#]*?))\s*(?:#.*)?$/.exec(line) ?? [];
    if (name !== undefined) found[name] = quotedValue ?? (value as string);
  }
  return found;
}
