import { FormatError, quoted } from "../format-error.js";
import {
  Arrays,
  checkedK,
  factors,
  flagOf,
  foldDecoderLengths,
  linearMaps,
  numberOf,
  placeOfHook,
  type ReadLayout,
  type Settings,
  settingsOf,
  type TensorSource,
  textOf,
} from "./dictionary.js";

/**
 * Reads a dictionary of Qwen-Scope, `layer{n}.sae.pt`: W_enc [F, d], W_dec [d, F]; the k largest values as they are,
 * without a ReLU. k is recorded only in the repository's name.
 * @throws FormatError
 */
export async function readQwenScope(source: TensorSource, k: number | undefined): Promise<ReadLayout> {
  const arrays = new Arrays(source, "Qwen-Scope");
  const weights = await arrays.weights({ ...factors, transposed: "decoder" });
  return { layout: "Qwen-Scope", activation: "topk_raw", k: checkedK(k, weights.features), ...weights };
}

/**
 * Reads a dictionary as Goodfire publishes it: encoder_linear.weight [F, d], decoder_linear.weight [d, F]; ReLU.
 * @throws FormatError
 */
export async function readGoodfire(source: TensorSource): Promise<ReadLayout> {
  const weights = await new Arrays(source, "Goodfire").weights({
    encoder: "encoder_linear.weight",
    encoderBias: "encoder_linear.bias",
    decoder: "decoder_linear.weight",
    decoderBias: "decoder_linear.bias",
    transposed: "decoder",
  });
  return { layout: "Goodfire", activation: "relu", ...weights };
}

/**
 * Reads `ae.pt` with `config.json` of dictionary_learning (Marks, Mueller et al.): the class is the trainer's
 * dict_class. All but JumpReLU and AutoEncoderNew subtract the bias from the input.
 * @throws FormatError
 */
export async function readDictionaryLearning(config: unknown, source: TensorSource): Promise<ReadLayout> {
  const trainer = settingsOf(settingsOf(config, "config.json").trainer, "trainer in config.json");
  const name = textOf(trainer, "dict_class") ?? "AutoEncoder";
  const arrays = new Arrays(source, `dictionary_learning's ${name}`);
  const found = await classOf(name, trainer, arrays);
  const model = textOf(trainer, "lm_name");
  return {
    layout: "dictionary_learning",
    ...found,
    origin: { ...placeOf(trainer), ...(model !== undefined && { model }) },
  };
}

function placeOf(trainer: Settings): { layer?: number; point?: string; hook?: string } {
  const submodule = textOf(trainer, "submodule_name");
  if (submodule !== undefined && !/^resid_post/.test(submodule)) {
    // A named hook point, refused if it is not a point of a block.
    return { hook: submodule, ...placeOfHook(submodule) };
  }
  const layer = numberOf(trainer, "layer");
  return {
    ...(layer !== undefined && { layer }),
    ...(submodule !== undefined && { point: "block_out" }),
  };
}

type Found = Omit<ReadLayout, "layout">;

async function classOf(name: string, trainer: Settings, arrays: Arrays): Promise<Found> {
  switch (name) {
    case "AutoEncoder": {
      const found = await arrays.weights({ ...linearMaps, decoderBias: "bias" });
      // Its own loader normalizes the decoder's columns and scales the encoder's rows by their lengths.
      foldDecoderLengths(found);
      return { ...found, activation: "relu", subtractBias: true };
    }
    case "AutoEncoderNew":
      return { ...(await arrays.weights(linearMaps)), activation: "relu" };
    case "AutoEncoderTopK": {
      const found = await arrays.weights({ ...linearMaps, decoderBias: "b_dec" });
      const k = numberOf(trainer, "k") ?? (arrays.has("k") ? await arrays.scalar("k") : undefined);
      return { ...found, activation: "topk", k: checkedK(k, found.features), subtractBias: true };
    }
    case "BatchTopKSAE":
    case "MatryoshkaBatchTopKSAE": {
      const linear = name === "BatchTopKSAE";
      const found = await arrays.weights(linear ? { ...linearMaps, decoderBias: "b_dec" } : factors);
      const threshold = await oneThreshold(arrays, found.features);
      return { ...found, activation: "jumprelu", threshold, subtractBias: true };
    }
    case "JumpReluAutoEncoder": {
      const found = await arrays.weights(factors);
      const threshold = await arrays.read("threshold", found.features);
      // Before it had an option, this class alone did not subtract the bias from the input.
      const subtractBias = flagOf(trainer, "apply_b_dec_to_input") ?? false;
      return { ...found, activation: "jumprelu", threshold, subtractBias };
    }
    case "GatedAutoEncoder": {
      const found = await arrays.weights({
        ...linearMaps,
        ...{ encoderBias: "gate_bias", decoderBias: "decoder_bias" },
      });
      return {
        ...found,
        activation: "gated",
        gain: (await arrays.read("r_mag", found.features)).map(Math.exp),
        magnitudeBias: await arrays.read("mag_bias", found.features),
        subtractBias: true,
      };
    }
    default:
      throw new FormatError(`The class ${quoted(name)} of dictionary_learning is not supported.`);
  }
}

async function oneThreshold(arrays: Arrays, features: number): Promise<Float32Array> {
  const threshold = await arrays.scalar("threshold");
  if (threshold >= 0) return new Float32Array(features).fill(threshold);
  throw new FormatError(`The threshold is ${threshold}: training never set it, so no feature can be read.`);
}
