import type { VectorFormat } from "../contracts/live-limits.js";
import { UserError } from "../contracts/user-error.js";
import { FormatError } from "../formats/format-error.js";
import type { ModelIdentity } from "./identity.js";
import { isTorch, type TensorFile, torchTensors } from "./tensor-files.js";

/** Properties that the caller supplies for a file that does not record them. */
export interface ForeignClaims {
  model: Pick<ModelIdentity, "nLayer">;
  /** A layer, counted as in the file's project. */
  layer: number | undefined;
  /** Which of several vectors in one file. */
  entry: string | undefined;
}

export interface ForeignVector {
  /** By zero-based block, whose output they are for. */
  layers: Map<number, Float32Array>;
  note: string;
}

type Reader = (file: TensorFile, claims: ForeignClaims) => Promise<ForeignVector>;

const readers: Record<VectorFormat, Reader> = {
  persona,
  "assistant-axis": assistantAxis,
  capping,
  refusal,
};

/** Whether a file is a PyTorch checkpoint, in the current or an older format. */
export function looksLikeTorch(bytes: Uint8Array): boolean {
  const [first, second] = bytes;
  // A .safetensors file's length field may start like the older format, but is followed by the head after eight
  // bytes.
  if (first === 0x80) return bytes[8] !== 0x7b;
  return first === 0x50 && second === 0x4b && isTorch(bytes);
}

/**
 * Reads directions that another project published as a PyTorch file, without running any of its code.
 * @throws FormatError, UserError
 */
export async function readForeignVector(
  bytes: Uint8Array,
  format: VectorFormat,
  claims: ForeignClaims,
): Promise<ForeignVector> {
  if (claims.entry !== undefined && format !== "capping") {
    throw new UserError(`entry is for capping files, which have several vectors; ${format} files have one.`);
  }
  const file = await torchTensors(bytes.length, async (start, end) => {
    if (start < 0 || end > bytes.length) throw new FormatError(`The file is truncated before byte ${end}.`);
    return bytes.subarray(start, end);
  });
  return readers[format](file, claims);
}

/**
 * Persona vectors: one tensor [blocks + 1, hidden], row l the mean difference of transformers' hidden_states[l],
 * which for l from 1 on is the output of block l - 1. Row 0 is the embedding, and the last row is taken after the
 * final norm: neither is a block's output. (Source: safety-research/persona_vectors.)
 */
async function persona(file: TensorFile, { model, layer }: ForeignClaims): Promise<ForeignVector> {
  const { rows, shape } = await matrix(file, "tensor");
  if (shape[0] !== model.nLayer + 1) {
    throw new UserError(
      `The file has ${shape[0]} rows; persona vectors of a model with ${model.nLayer} blocks have ${model.nLayer + 1}.`,
    );
  }
  const last = model.nLayer - 1;
  const kept = chosen(
    layer,
    1,
    last,
    "Rows 1 to",
    "row 0 is the embedding, the last is taken after the final norm",
  );
  return {
    layers: new Map(kept.map((row) => [row - 1, rows(row)])),
    note: `Persona vectors: row l of the file (hidden_states[l]) is the output of block l - 1${named(layer, -1)}.`,
  };
}

/**
 * The assistant axis: a tensor [blocks, hidden], or a dict with it under `axis`; row i is for the output of block i.
 * (Source: safety-research/assistant-axis.)
 */
async function assistantAxis(file: TensorFile, { model, layer }: ForeignClaims): Promise<ForeignVector> {
  const { rows, shape } = await matrix(file, file.shapes.has("axis") ? "axis" : "tensor");
  if (shape[0] !== model.nLayer) {
    throw new UserError(
      `The file has ${shape[0]} rows; an assistant axis has one per block, ${model.nLayer} for this model.`,
    );
  }
  const kept = chosen(layer, 0, model.nLayer - 1, "Rows 0 to", "the model has no more blocks");
  return {
    layers: new Map(kept.map((row) => [row, rows(row)])),
    note: `Assistant axis: row i of the file is the output of block i${named(layer, 0)}.`,
  };
}

/** The vectors of the assistant axis's capping_config.pt: `vectors.<name>` with `layer` and `vector`, of block outputs. */
async function capping(file: TensorFile, { entry, layer }: ForeignClaims): Promise<ForeignVector> {
  const entries = [...file.shapes.keys()].flatMap((name) => /^vectors\.(.+)\.vector$/.exec(name)?.[1] ?? []);
  if (entries.length === 0) throw missing("vectors.<name>.vector", file);
  if (entry === undefined || !entries.includes(entry)) {
    const list = entries.slice(0, 20).join(", ");
    throw new UserError(
      entry === undefined
        ? `The file has ${entries.length} vectors; specify the entry: ${list}.`
        : `The file has no entry ${entry.slice(0, 80)}; it has ${list}.`,
    );
  }
  const [own] = await file.read(`vectors.${entry}.layer`);
  if (own === undefined || !Number.isInteger(own) || own < 0) {
    throw new FormatError(`The file does not record the layer of ${entry}.`);
  }
  if (layer !== undefined && layer !== own) {
    throw new UserError(`According to the file, ${entry} is for layer ${own}, not ${layer}.`);
  }
  return {
    layers: new Map([[own, await flat(file, `vectors.${entry}.vector`)]]),
    note: `${entry} of a capping file: the output of block ${own}, intended for capping (clamp with max).`,
  };
}

/**
 * A refusal direction: direction.pt [hidden], for the INPUT of the block given by `layer` in direction_metadata.json,
 * which is the output of the previous block. (Source: andyrdt/refusal_direction.)
 */
async function refusal(file: TensorFile, { layer }: ForeignClaims): Promise<ForeignVector> {
  if (layer === undefined) {
    throw new UserError(
      "A refusal direction does not record its layer: pass `layer` from direction_metadata.json.",
    );
  }
  if (layer === 0) {
    throw new UserError(
      "A refusal direction of layer 0 applies to the embedding, the input of block 0; only block outputs are supported.",
    );
  }
  return {
    layers: new Map([[layer - 1, await flat(file, "tensor")]]),
    note: `Refusal direction of layer ${layer}: the input of block ${layer} is the output of block ${layer - 1}; intended to be projected out of every block (project_out), or added.`,
  };
}

/** The rows to import: all from first to last, or the requested one. */
function chosen(
  layer: number | undefined,
  first: number,
  last: number,
  which: string,
  why: string,
): number[] {
  if (layer === undefined) return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  if (layer >= first && layer <= last) return [layer];
  throw new UserError(`${which} ${last} of the file are block outputs (${why}); got ${layer}.`);
}

function named(layer: number | undefined, offset: number): string {
  return layer === undefined ? "" : `; imported is row ${layer}, for block ${layer + offset}`;
}

async function matrix(file: TensorFile, name: string) {
  const shape = shapeOf(file, name);
  const [count, hidden] = shape;
  if (shape.length !== 2 || count === undefined || hidden === undefined) {
    throw new FormatError(
      `The tensor has the shape [${shape.join(", ")}]; expected rows of the model's hidden size.`,
    );
  }
  const data = await file.read(name);
  return { shape, rows: (row: number) => data.slice(row * hidden, (row + 1) * hidden) };
}

async function flat(file: TensorFile, name: string): Promise<Float32Array> {
  const shape = shapeOf(file, name);
  if (shape.length !== 1) {
    throw new FormatError(`The tensor has the shape [${shape.join(", ")}]; expected one vector.`);
  }
  return file.read(name);
}

function shapeOf(file: TensorFile, name: string): readonly number[] {
  const shape = file.shapes.get(name);
  if (shape === undefined) throw missing(name, file);
  return shape;
}

function missing(name: string, file: TensorFile): FormatError {
  const there = [...file.shapes.keys()]
    .slice(0, 10)
    .map((each) => each.slice(0, 60))
    .join(", ");
  const wanted = name === "tensor" ? "a single tensor" : name;
  return new FormatError(`The file does not contain ${wanted}; it contains ${there || "nothing supported"}.`);
}
