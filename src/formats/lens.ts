import { Arrays, numberOf, settingsOf, textOf } from "./dictionaries/dictionary.js";
import type { LayoutFiles } from "./dictionaries/read.js";
import { FormatError, quoted } from "./format-error.js";

/** A lens's transformation of one block's output before the model's final norm and unembedding. */
export interface Translation {
  /** [hidden, hidden], one row per output. */
  matrix: Float32Array;
  /** [hidden] */
  bias?: Float32Array;
}

/**
 * A lens in the common form that all layouts are converted to: a block output h becomes matrix . h + bias, plus h
 * itself if `residual`, followed by the model's final norm and unembedding.
 */
export interface Lens {
  layout: string;
  kind: "jacobian" | "tuned" | "regression";
  hidden: number;
  residual: boolean;
  /** Blocks whose output it translates, ascending. */
  layers: number[];
  /** Blocks of its model; undefined if not recorded. */
  modelLayers?: number | undefined;
  /** The model's name in the file. */
  model?: string | undefined;
  /** Texts that it was fitted on. */
  texts?: number | undefined;
  /** Notes for users on how the file was read, one sentence each. */
  notes: string[];
  /** Reads one block's translation; those of a large model do not fit into memory together. */
  read(layer: number): Promise<Translation>;
}

const mostLayers = 1024;

/**
 * The files of one lens among all paths of a folder or repository: its settings, then its weights.
 * @param at its file or folder; empty for the root
 * @throws FormatError if there is none, or more than one
 */
export function lensFiles(paths: readonly string[], at: string): string[] {
  const weights = paths.filter((path) =>
    paths.includes(at)
      ? path === at
      : path.startsWith(at === "" ? "" : `${at}/`) &&
        /(^|\/)(params|[^/]*jacobian_lens[^/]*)\.pt$/.test(path),
  );
  const [found] = weights;
  if (found === undefined) {
    throw new FormatError(
      `No lens at ${at === "" ? "the root" : at}; expected *_jacobian_lens.pt, params.pt with config.json, or a .safetensors file written by tapline.`,
    );
  }
  if (weights.length > 1) {
    throw new FormatError(
      `There are ${weights.length} lenses at ${at === "" ? "the root" : at}; specify one: ${weights.slice(0, 5).join(", ")}.`,
    );
  }
  const settings = found.replace(/[^/]*$/, "config.json");
  return /(^|\/)params\.pt$/.test(found) ? [settings, found] : [found];
}

/**
 * Reads a published lens: the Jacobian lens (`*_jacobian_lens.pt`: J by block, 16 bits), the tuned lens (`params.pt`
 * with `config.json`: one translator per block), or tapline's own format.
 * @param weights the name of its weights file among `files`
 * @throws FormatError
 */
export async function readLens(files: LayoutFiles, weights: string): Promise<Lens> {
  const source = await files.tensors(weights);
  const names = [...source.shapes.keys()];
  if (source.metadata.tapline === "lens") return ownLens(source);
  if (names.some((name) => /^J\.\d+$/.test(name))) return jacobianLens(source);
  if (names.some((name) => /^\d+\.weight$/.test(name))) {
    if (!files.names.includes("config.json")) {
      throw new FormatError("A tuned lens needs a config.json next to its params.pt; there is none.");
    }
    return tunedLens(source, await files.json("config.json"));
  }
  throw new FormatError(
    `The file is not a supported lens: it has ${names.slice(0, 8).map(quoted).join(", ") || "no arrays"}; Jacobian lenses have J by block, tuned lenses N.weight and N.bias.`,
  );
}

type Source = Awaited<ReturnType<LayoutFiles["tensors"]>>;

/** The numbers that a pattern extracts from array names, ascending. */
function numbersIn(source: Source, pattern: RegExp): number[] {
  const found = [...source.shapes.keys()].flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number);
  if (found.length > mostLayers) {
    throw new FormatError(`The file has ${found.length} blocks; at most ${mostLayers} are supported.`);
  }
  return found.sort((a, b) => a - b);
}

/** The common width of square matrices. */
function widthOf(arrays: Arrays, names: readonly string[]): number {
  const [width] = arrays.matrix(names[0] as string);
  for (const name of names) {
    const [rows, columns] = arrays.matrix(name);
    if (rows !== width || columns !== width) {
      throw new FormatError(
        `${quoted(name)} has the shape [${rows}, ${columns}]; expected [${width}, ${width}].`,
      );
    }
  }
  return width;
}

/**
 * The Jacobian lens as jlens writes it: J by the block whose output it reads, d_model, n_prompts. The last block has
 * none, as it needs none.
 */
async function jacobianLens(source: Source): Promise<Lens> {
  const arrays = new Arrays(source, "Jacobian lens");
  const { metadata } = source;
  const point = metadata["provenance.capture_point"];
  if (point !== undefined && !/resid_?post|block_?out|layer_?out|hook_out/i.test(point)) {
    throw new FormatError(`The lens reads ${quoted(point)}; only block outputs are supported.`);
  }
  if (arrays.has("provenance.stream_index") || metadata["provenance.stream_reduce"] !== undefined) {
    throw new FormatError(
      "The lens reads one of several residual streams; only models with one are supported.",
    );
  }
  const layers = numbersIn(source, /^J\.(\d{1,4})$/);
  const hidden = widthOf(
    arrays,
    layers.map((layer) => `J.${layer}`),
  );
  const said = arrays.has("d_model") ? await arrays.scalar("d_model") : hidden;
  if (said !== hidden)
    throw new FormatError(`In the file d_model is ${said}, but its matrices are ${hidden} wide.`);
  return {
    layout: "Jacobian lens",
    kind: "jacobian",
    hidden,
    residual: false,
    layers,
    texts: arrays.has("n_prompts") ? await arrays.scalar("n_prompts") : undefined,
    notes: [],
    read: async (layer) => ({ matrix: await arrays.read(`J.${layer}`, hidden, hidden) }),
  };
}

/**
 * The tuned lens as AlignmentResearch/tuned-lens writes it: translator N, whose input is the input of block N, which is
 * the output of block N - 1; the first one reads the embedding.
 */
async function tunedLens(source: Source, config: unknown): Promise<Lens> {
  const arrays = new Arrays(source, "tuned lens");
  const settings = settingsOf(config, "config.json");
  const type = textOf(settings, "lens_type");
  if (type !== undefined && type !== "linear_tuned_lens") {
    throw new FormatError(`The lens is a ${quoted(type)}; only linear_tuned_lens is supported.`);
  }
  const translators = numbersIn(source, /^(\d{1,4})\.weight$/);
  const hidden = widthOf(
    arrays,
    translators.map((index) => `${index}.weight`),
  );
  const said = numberOf(settings, "d_model") ?? hidden;
  if (said !== hidden)
    throw new FormatError(`In config.json d_model is ${said}, but the matrices are ${hidden} wide.`);
  const modelLayers = numberOf(settings, "num_hidden_layers");
  const deepest = translators.at(-1) as number;
  if (modelLayers !== undefined && deepest >= modelLayers) {
    throw new FormatError(
      `config.json lists ${modelLayers} blocks, but the file has a translator ${deepest}.`,
    );
  }
  const layers = translators.filter((index) => index > 0).map((index) => index - 1);
  if (layers.length === 0)
    throw new FormatError("The lens translates only the embedding, not block outputs.");
  return {
    layout: "tuned lens",
    kind: "tuned",
    hidden,
    residual: true,
    layers,
    modelLayers,
    model: textOf(settings, "base_model_name_or_path"),
    notes:
      translators[0] === 0
        ? ["Its translator of the embedding was skipped, as it does not read a block output."]
        : [],
    read: async (layer) => ({
      matrix: await arrays.read(`${layer + 1}.weight`, hidden, hidden),
      ...(arrays.has(`${layer + 1}.bias`) && { bias: await arrays.read(`${layer + 1}.bias`, hidden) }),
    }),
  };
}

/** tapline's own format, which `tapline lens fit` writes. */
async function ownLens(source: Source): Promise<Lens> {
  const arrays = new Arrays(source, "tapline's lens");
  let about: unknown;
  try {
    about = JSON.parse(source.metadata.lens ?? "");
  } catch {
    throw new FormatError("The file is marked as a tapline lens, but its description is invalid.");
  }
  const said = settingsOf(about, "the file's metadata");
  const kind = textOf(said, "kind");
  if (kind !== "jacobian" && kind !== "tuned" && kind !== "regression") {
    throw new FormatError(`The lens has the unknown kind ${quoted(String(kind))}.`);
  }
  const layers = numbersIn(source, /^layer_(\d{1,4})$/);
  if (layers.length === 0) throw new FormatError("The lens does not translate any block output.");
  const hidden = widthOf(
    arrays,
    layers.map((layer) => `layer_${layer}`),
  );
  return {
    layout: "tapline",
    kind,
    hidden,
    residual: said.residual === true,
    layers,
    modelLayers: numberOf(said, "model_layers"),
    model: textOf(said, "trained_on"),
    texts: numberOf(said, "texts"),
    notes: Array.isArray(said.notes) ? said.notes.map((note) => String(note).slice(0, 500)).slice(0, 20) : [],
    read: async (layer) => ({
      matrix: await arrays.read(`layer_${layer}`, hidden, hidden),
      ...(arrays.has(`bias_${layer}`) && { bias: await arrays.read(`bias_${layer}`, hidden) }),
    }),
  };
}
