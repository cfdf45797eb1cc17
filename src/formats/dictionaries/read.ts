import { FormatError, quoted, quotedPath } from "../format-error.js";
import { readCircuitTracer } from "./circuit-tracer.js";
import { blocksAmong, decodersBeside, readCrossLayer } from "./cross-layer.js";
import { Arrays, type Dictionary, plain, type ReadLayout, type TensorSource } from "./dictionary.js";
import { readGemmaScope } from "./gemma-scope.js";
import { crossLayerFile, readGemmaScopeCrossLayer } from "./gemma-scope-cross-layer.js";
import { readLabSae } from "./lab-sae.js";
import { readLlamaScope } from "./llama-scope.js";
import { allFinite, finite, notFinite } from "./row-stream.js";
import { readSaeLens } from "./saelens.js";
import { readSparsify } from "./sparsify.js";
import { readDictionaryLearning, readGoodfire, readQwenScope } from "./torch.js";

/** The files of a dictionary's folder, by name, opened on demand. */
export interface LayoutFiles {
  readonly names: readonly string[];
  json(name: string): Promise<unknown>;
  text(name: string): Promise<string>;
  tensors(name: string): Promise<TensorSource & { metadata: Readonly<Record<string, string>> }>;
}

interface Layout {
  name: string;
  /** The weights files, one per dictionary, if the files match this layout. */
  weights(names: readonly string[]): string[];
  read(files: LayoutFiles, weights: string, k: number | undefined): Promise<ReadLayout>;
}

/** The file of this name, if another file is in the same folder. */
const beside = (weights: string, other: string) => (names: readonly string[]) =>
  names.includes(other) ? names.filter((name) => name === weights) : [];

const alone = (pattern: RegExp) => (names: readonly string[]) => names.filter((name) => pattern.test(name));

/** Reads weights with a file of settings, if the folder has one. */
const configured =
  (settings: string, read: (config: unknown, source: TensorSource) => Promise<ReadLayout>): Layout["read"] =>
  async (files, weights) => {
    const config = files.names.includes(settings) ? await files.json(settings) : undefined;
    return read(config, await files.tensors(weights));
  };

/** The supported layouts, recognized by their file names. */
export const layouts: readonly Layout[] = [
  {
    name: "SAELens (cfg.json, sae_weights.safetensors)",
    weights: beside("sae_weights.safetensors", "cfg.json"),
    read: configured("cfg.json", readSaeLens),
  },
  {
    name: "sparsify (cfg.json, sae.safetensors)",
    weights: beside("sae.safetensors", "cfg.json"),
    read: configured("cfg.json", readSparsify),
  },
  {
    name: "Llama Scope (hyperparams.json, checkpoints/final.safetensors)",
    weights: (names) =>
      names.includes("hyperparams.json")
        ? names.filter((name) => /^(checkpoints\/)?final\.safetensors$/.test(name))
        : [],
    read: configured("hyperparams.json", readLlamaScope),
  },
  {
    name: "Gemma Scope (params.npz)",
    weights: alone(/^params\.npz$/),
    read: async (files, weights) => readGemmaScope(undefined, await files.tensors(weights)),
  },
  {
    name: "Gemma Scope 2 (params.safetensors, config.json)",
    weights: alone(/^params\.safetensors$/),
    read: configured("config.json", readGemmaScope),
  },
  {
    name: "Gemma Scope 2's cross-layer transcoders (params_layer_N.safetensors, config.json)",
    weights: alone(crossLayerFile),
    read: async (files, weights) => {
      const config = files.names.includes("config.json") ? await files.json("config.json") : undefined;
      return readGemmaScopeCrossLayer(config, await files.tensors(weights), weights);
    },
  },
  {
    name: "dictionary_learning (ae.pt, config.json)",
    weights: beside("ae.pt", "config.json"),
    read: configured("config.json", readDictionaryLearning),
  },
  {
    name: "circuit-tracer's transcoders (config.yaml, layer_N.safetensors)",
    weights: (names) =>
      names.includes("config.yaml") ? names.filter((name) => /^layer_\d+\.safetensors$/.test(name)) : [],
    read: async (files, weights) =>
      readCircuitTracer(await files.text("config.yaml"), await files.tensors(weights), weights),
  },
  {
    name: "circuit-tracer's cross-layer transcoders (config.yaml, W_enc_N.safetensors, W_dec_N.safetensors)",
    weights: blocksAmong,
    read: async (files, weights) => {
      const decoders = decodersBeside(weights) as string;
      if (!files.names.includes(decoders))
        throw new FormatError(`There is no ${decoders} beside ${weights}.`);
      const sources = [await files.tensors(weights), await files.tensors(decoders)] as const;
      return readCrossLayer(await files.text("config.yaml"), sources, weights);
    },
  },
  {
    name: "tapline's Lab (sae-layer-N.safetensors, sae-normalization-N.npz)",
    weights: alone(/^sae-layer-\d+\.safetensors$/),
    read: async (files, weights) => {
      const scaling = weights.replace("sae-layer", "sae-normalization").replace(".safetensors", ".npz");
      const { metadata, ...source } = await files.tensors(weights);
      return readLabSae(
        metadata,
        source,
        files.names.includes(scaling) ? await files.tensors(scaling) : undefined,
      );
    },
  },
  {
    name: "Qwen-Scope and Goodfire (.pt, .pth)",
    weights: alone(/\.pth?$/),
    read: async (files, weights, k) => {
      const source = await files.tensors(weights);
      return new Arrays(source, "a .pt file").has("encoder_linear.weight")
        ? readGoodfire(source)
        : readQwenScope(source, k);
    },
  },
];

/** Whether files of these names contain one or more dictionaries. */
export function holdsOne(names: readonly string[]): boolean {
  return layouts.some(({ weights }) => weights(names).length > 0);
}

/**
 * The layout and weights file for these file names; undefined if no layout matches.
 * @throws FormatError if there is more than one dictionary
 */
export function layoutOf(names: readonly string[]): { weights: string; read: Layout["read"] } | undefined {
  for (const { weights, read } of layouts) {
    const [found, ...others] = weights(names);
    if (found === undefined) continue;
    if (others.length === 0) return { weights: found, read };
    const some = [found, ...others].slice(0, 5).map(quotedPath).join(", ");
    throw new FormatError(`The folder has ${others.length + 1} dictionaries, such as ${some}; specify one.`);
  }
  return undefined;
}

/**
 * Reads a dictionary from the files of its folder, whatever its layout.
 * @param k features that stay active, for a layout that does not record it
 * @throws FormatError if no layout matches, or a file violates its layout
 */
export async function readDictionary(files: LayoutFiles, k?: number): Promise<Dictionary> {
  const layout = layoutOf(files.names);
  if (layout !== undefined) {
    return checked({ ...plain(), ...(await layout.read(files, layout.weights, k)) });
  }
  throw new FormatError(
    `No supported layout matches the files ${files.names.slice(0, 12).map(quoted).join(", ") || "(none)"}; supported are ` +
      `${layouts.map(({ name }) => name).join("; ")}.`,
  );
}

const longestName = 300;

/** @throws FormatError if a number is NaN or infinite, or the model's name is invalid */
function checked(dictionary: Dictionary): Dictionary {
  const { model = "" } = dictionary.origin;
  if (model.length > longestName || /\p{Cc}/u.test(model)) {
    throw new FormatError(
      `The model's name in the dictionary's files has ${model.length} characters, or unprintable ones: ` +
        `${quoted(model)}.`,
    );
  }
  const parts = [
    "encoder",
    "encoderBias",
    "decoder",
    "decoderBias",
    "threshold",
    "gain",
    "magnitudeBias",
    "skip",
  ] as const;
  for (const part of parts) {
    const numbers = dictionary[part];
    if (numbers instanceof Float32Array && !allFinite(numbers)) throw notFinite(part);
  }
  const { decoder } = dictionary;
  return decoder instanceof Float32Array
    ? dictionary
    : { ...dictionary, decoder: finite(decoder, "decoder") };
}
