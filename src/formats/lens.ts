import { Arrays, numberOf, settingsOf, textOf } from "./dictionaries/dictionary.js";
import type { LayoutFiles } from "./dictionaries/read.js";
import { FormatError, told } from "./format-error.js";

/** What a lens does to a row of one block's output before the model's own final norm and head. */
export interface Translation {
  /** [hidden, hidden], a row an output. */
  matrix: Float32Array;
  /** [hidden] */
  bias?: Float32Array;
}

/**
 * A lens that translates, in the one form that all layouts become: a row h of a block's output becomes
 * matrix . h + bias, plus h itself where `residual`; then follow the model's own final norm and head.
 */
export interface Lens {
  layout: string;
  kind: "jacobian" | "tuned" | "regression";
  hidden: number;
  residual: boolean;
  /** Blocks whose output it translates, ascending. */
  layers: number[];
  /** Blocks of its model; undefined where the file does not say. */
  modelLayers?: number | undefined;
  /** The model as the file calls it. */
  model?: string | undefined;
  /** Texts that it was fitted on. */
  texts?: number | undefined;
  /** What a person should know of how the file was read, a sentence each. */
  notes: string[];
  /** One block's, read when it is asked for: those of a large model do not fit into memory together. */
  read(layer: number): Promise<Translation>;
}

const mostLayers = 1024;

/**
 * The files of one lens among all paths of a folder or repository: its settings, then its weights.
 * @param at the file or folder of it; empty for the root
 * @throws FormatError where there is none, or more than one
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
      `There is no lens at ${at === "" ? "the root" : at}: a file *_jacobian_lens.pt, params.pt beside a config.json, or a ` +
        ".safetensors of tapline's.",
    );
  }
  if (weights.length > 1) {
    throw new FormatError(
      `There are ${weights.length} lenses at ${at === "" ? "the root" : at}; name one: ${weights.slice(0, 5).join(", ")}.`,
    );
  }
  const settings = found.replace(/[^/]*$/, "config.json");
  return /(^|\/)params\.pt$/.test(found) ? [settings, found] : [found];
}

/**
 * Reads a published lens: the Jacobian lens (`*_jacobian_lens.pt`: J by block, 16 bits), the tuned lens (`params.pt` with
 * `config.json`: a translator a block), or a lens of tapline's own.
 * @param weights the name of its file of weights among `files`
 * @throws FormatError
 */
export async function readLens(files: LayoutFiles, weights: string): Promise<Lens> {
  const source = await files.tensors(weights);
  const names = [...source.shapes.keys()];
  if (source.metadata.tapline === "lens") return ownLens(source);
  if (names.some((name) => /^J\.\d+$/.test(name))) return jacobianLens(source);
  if (names.some((name) => /^\d+\.weight$/.test(name))) {
    if (!files.names.includes("config.json")) {
      throw new FormatError("A tuned lens has a config.json beside its params.pt; there is none.");
    }
    return tunedLens(source, await files.json("config.json"));
  }
  throw new FormatError(
    `The file is no lens that is read: it has ${names.slice(0, 8).map(told).join(", ") || "no arrays"}; a Jacobian lens has ` +
      "J by block, a tuned lens N.weight and N.bias.",
  );
}

type Source = Awaited<ReturnType<LayoutFiles["tensors"]>>;

/** The numbers in names that a pattern takes one out of, ascending. */
function numbersIn(source: Source, pattern: RegExp): number[] {
  const found = [...source.shapes.keys()].flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number);
  if (found.length > mostLayers) {
    throw new FormatError(`The file has ${found.length} blocks; at most ${mostLayers} are read.`);
  }
  return found.sort((a, b) => a - b);
}

/** The width of square matrices, all alike. */
function widthOf(arrays: Arrays, names: readonly string[]): number {
  const [width] = arrays.matrix(names[0] as string);
  for (const name of names) {
    const [rows, columns] = arrays.matrix(name);
    if (rows !== width || columns !== width) {
      throw new FormatError(
        `${told(name)} has the shape [${rows}, ${columns}]; [${width}, ${width}] fits here.`,
      );
    }
  }
  return width;
}

/**
 * The Jacobian lens as jlens writes it: J by the block whose output it reads, d_model, n_prompts. The last block has none: it
 * needs none.
 */
async function jacobianLens(source: Source): Promise<Lens> {
  const arrays = new Arrays(source, "Jacobian lens");
  const { metadata } = source;
  const point = metadata["provenance.capture_point"];
  if (point !== undefined && !/resid_?post|block_?out|layer_?out|hook_out/i.test(point)) {
    throw new FormatError(`The lens reads at ${told(point)}; only block outputs are offered.`);
  }
  if (arrays.has("provenance.stream_index") || metadata["provenance.stream_reduce"] !== undefined) {
    throw new FormatError(
      "The lens reads one of several streams of its model; only single streams are read.",
    );
  }
  const layers = numbersIn(source, /^J\.(\d{1,4})$/);
  const hidden = widthOf(
    arrays,
    layers.map((layer) => `J.${layer}`),
  );
  const said = arrays.has("d_model") ? await arrays.scalar("d_model") : hidden;
  if (said !== hidden)
    throw new FormatError(`The file says d_model ${said}; its matrices are ${hidden} wide.`);
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
    throw new FormatError(`The lens is a ${told(type)}; linear_tuned_lens is read.`);
  }
  const translators = numbersIn(source, /^(\d{1,4})\.weight$/);
  const hidden = widthOf(
    arrays,
    translators.map((index) => `${index}.weight`),
  );
  const said = numberOf(settings, "d_model") ?? hidden;
  if (said !== hidden)
    throw new FormatError(`config.json says d_model ${said}; the matrices are ${hidden} wide.`);
  const modelLayers = numberOf(settings, "num_hidden_layers");
  const deepest = translators.at(-1) as number;
  if (modelLayers !== undefined && deepest >= modelLayers) {
    throw new FormatError(`config.json says ${modelLayers} blocks; the file has a translator ${deepest}.`);
  }
  const layers = translators.filter((index) => index > 0).map((index) => index - 1);
  if (layers.length === 0)
    throw new FormatError("The lens translates the embedding alone, no block's output.");
  return {
    layout: "tuned lens",
    kind: "tuned",
    hidden,
    residual: true,
    layers,
    modelLayers,
    model: textOf(settings, "base_model_name_or_path"),
    notes: translators[0] === 0 ? ["Its translator of the embedding is left out: no block's output."] : [],
    read: async (layer) => ({
      matrix: await arrays.read(`${layer + 1}.weight`, hidden, hidden),
      ...(arrays.has(`${layer + 1}.bias`) && { bias: await arrays.read(`${layer + 1}.bias`, hidden) }),
    }),
  };
}

/** What tapline keeps, and `tapline lens fit` writes. */
async function ownLens(source: Source): Promise<Lens> {
  const arrays = new Arrays(source, "tapline's lens");
  let about: unknown;
  try {
    about = JSON.parse(source.metadata.lens ?? "");
  } catch {
    throw new FormatError("The file says that it is a lens of tapline's, and not which.");
  }
  const said = settingsOf(about, "what the file says of itself");
  const kind = textOf(said, "kind");
  if (kind !== "jacobian" && kind !== "tuned" && kind !== "regression") {
    throw new FormatError(`The lens is of the kind ${told(String(kind))}, which is none.`);
  }
  const layers = numbersIn(source, /^layer_(\d{1,4})$/);
  if (layers.length === 0) throw new FormatError("The lens translates no block's output.");
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
