import { FormatError, told } from "../format-error.js";
import {
  Arrays,
  checkedK,
  type Dictionary,
  flagOf,
  foldDecoderLengths,
  numberOf,
  placeOfHook,
  type Settings,
  settingsOf,
  type TensorSource,
  textOf,
} from "./dictionary.js";

/**
 * Reads a dictionary of Qwen-Scope, `layer{n}.sae.pt`: W_enc [F, d], W_dec [d, F]; the k largest values as they are,
 * without a ReLU. k stands in the repository's name alone.
 * @throws FormatError
 */
export async function readQwenScope(source: TensorSource, k: number | undefined): Promise<Dictionary> {
  const arrays = new Arrays(source, "Qwen-Scope");
  const [features, hidden] = arrays.matrix("W_enc");
  return {
    layout: "Qwen-Scope",
    activation: "topk_raw",
    k: checkedK(k, features),
    hidden,
    features,
    encoder: await arrays.read("W_enc", features, hidden),
    encoderBias: await arrays.read("b_enc", features),
    decoder: await arrays.transposed("W_dec", features, hidden),
    decoderBias: await arrays.read("b_dec", hidden),
    rowScaling: "none",
    subtractBias: false,
    origin: {},
    notes: [],
  };
}

/**
 * Reads a dictionary as Goodfire publishes it: encoder_linear.weight [F, d], decoder_linear.weight [d, F]; ReLU.
 * @throws FormatError
 */
export async function readGoodfire(source: TensorSource): Promise<Dictionary> {
  const arrays = new Arrays(source, "Goodfire");
  const [features, hidden] = arrays.matrix("encoder_linear.weight");
  return {
    layout: "Goodfire",
    activation: "relu",
    k: 0,
    hidden,
    features,
    encoder: await arrays.read("encoder_linear.weight", features, hidden),
    encoderBias: await arrays.read("encoder_linear.bias", features),
    decoder: await arrays.transposed("decoder_linear.weight", features, hidden),
    decoderBias: await arrays.read("decoder_linear.bias", hidden),
    rowScaling: "none",
    subtractBias: false,
    origin: {},
    notes: [],
  };
}

/**
 * Reads `ae.pt` with `config.json` of dictionary_learning (Marks, Mueller et al.): the class is the trainer's
 * dict_class. Only JumpReLU's and AutoEncoderNew's do not take the bias from the input.
 * @throws FormatError
 */
export async function readDictionaryLearning(config: unknown, source: TensorSource): Promise<Dictionary> {
  const trainer = settingsOf(settingsOf(config, "config.json").trainer, "trainer in config.json");
  const name = textOf(trainer, "dict_class") ?? "AutoEncoder";
  const arrays = new Arrays(source, `dictionary_learning's ${name}`);
  const found = await classOf(name, trainer, arrays);
  const model = textOf(trainer, "lm_name");
  return {
    layout: "dictionary_learning",
    ...found,
    rowScaling: "none",
    origin: { ...placeOf(trainer), ...(model !== undefined && { model }) },
    notes: [],
  };
}

function placeOf(trainer: Settings): { layer?: number; point?: string; hook?: string } {
  const submodule = textOf(trainer, "submodule_name");
  if (submodule !== undefined && !/^resid_post/.test(submodule)) {
    // A named place that is a point of a block, or a refusal by its name.
    return { hook: submodule, ...placeOfHook(submodule) };
  }
  const layer = numberOf(trainer, "layer");
  return {
    ...(layer !== undefined && { layer }),
    ...(submodule !== undefined && { point: "block_out" }),
  };
}

type Found = Omit<Dictionary, "layout" | "rowScaling" | "origin" | "notes">;

async function classOf(name: string, trainer: Settings, arrays: Arrays): Promise<Found> {
  switch (name) {
    case "AutoEncoder": {
      const found = await linear(arrays, "bias");
      // Its own loader makes the decoder's columns unit ones and the encoder's rows as much longer.
      foldDecoderLengths(found);
      return { ...found, activation: "relu", k: 0, subtractBias: true };
    }
    case "AutoEncoderNew":
      return { ...(await linear(arrays, "decoder.bias")), activation: "relu", k: 0, subtractBias: false };
    case "AutoEncoderTopK": {
      const found = await linear(arrays, "b_dec");
      const k = numberOf(trainer, "k") ?? (arrays.has("k") ? await arrays.scalar("k") : undefined);
      return { ...found, activation: "topk", k: checkedK(k, found.features), subtractBias: true };
    }
    case "BatchTopKSAE": {
      const found = await linear(arrays, "b_dec");
      return { ...found, ...(await oneThreshold(arrays, found.features)), subtractBias: true };
    }
    case "MatryoshkaBatchTopKSAE": {
      const found = await square(arrays);
      return { ...found, ...(await oneThreshold(arrays, found.features)), subtractBias: true };
    }
    case "JumpReluAutoEncoder": {
      const found = await square(arrays);
      const threshold = await arrays.read("threshold", found.features);
      // Until an option for it came, this class alone took no bias from the input.
      const subtractBias = flagOf(trainer, "apply_b_dec_to_input") ?? false;
      return { ...found, activation: "jumprelu", k: 0, threshold, subtractBias };
    }
    case "GatedAutoEncoder": {
      const [features, hidden] = arrays.matrix("encoder.weight");
      return {
        hidden,
        features,
        encoder: await arrays.read("encoder.weight", features, hidden),
        encoderBias: await arrays.read("gate_bias", features),
        decoder: await arrays.transposed("decoder.weight", features, hidden),
        decoderBias: await arrays.read("decoder_bias", hidden),
        activation: "gated",
        k: 0,
        gain: (await arrays.read("r_mag", features)).map(Math.exp),
        magnitudeBias: await arrays.read("mag_bias", features),
        subtractBias: true,
      };
    }
    default:
      throw new FormatError(`The class ${told(name)} of dictionary_learning is not read.`);
  }
}

/** Two linear maps of PyTorch: encoder.weight [F, d], decoder.weight [d, F]. */
async function linear(arrays: Arrays, bias: string) {
  const [features, hidden] = arrays.matrix("encoder.weight");
  return {
    hidden,
    features,
    encoder: await arrays.read("encoder.weight", features, hidden),
    encoderBias: await arrays.read("encoder.bias", features),
    decoder: await arrays.transposed("decoder.weight", features, hidden),
    decoderBias: await arrays.read(bias, hidden),
  };
}

async function square(arrays: Arrays) {
  const [hidden, features] = arrays.matrix("W_enc");
  return {
    hidden,
    features,
    encoder: await arrays.transposed("W_enc", features, hidden),
    encoderBias: await arrays.read("b_enc", features),
    decoder: await arrays.read("W_dec", features, hidden),
    decoderBias: await arrays.read("b_dec", hidden),
  };
}

async function oneThreshold(
  arrays: Arrays,
  features: number,
): Promise<Pick<Found, "activation" | "k" | "threshold">> {
  const threshold = await arrays.scalar("threshold");
  if (!(threshold >= 0)) {
    throw new FormatError(
      `The threshold is ${threshold}: training never set it, so nothing says what fires.`,
    );
  }
  return { activation: "jumprelu", k: 0, threshold: new Float32Array(features).fill(threshold) };
}
