import { FormatError, quoted } from "../format-error.js";
import { type RowStream, rowStream } from "./row-stream.js";

/**
 * How a feature's activation follows from its pre-activation h: `relu` max(h, 0); `jumprelu` max(h, 0) where h >
 * threshold, else 0; `topk` max(h, 0) of the k largest, else 0; `topk_raw` h of the k largest, negative ones too;
 * `gated` max(gain * p + magnitude bias, 0) where p + encoder bias > 0, with p = W x.
 */
export type Activation = "relu" | "jumprelu" | "topk" | "topk_raw" | "gated";

/** Scaling of an activation before encoding, reverted after decoding. */
export type RowScaling = "none" | "constant_norm" | "layer_norm";

/** What a file records about the hook point of its dictionary. */
export interface DictionaryOrigin {
  /** Block that it reads; absent if not recorded. */
  layer?: number;
  /** Point of the block; absent if not recorded. */
  point?: string;
  /** The hook point's name in the file. */
  hook?: string;
  /** The model's name in the file. */
  model?: string;
  prependBos?: boolean;
  /** Number of first tokens that it was not trained on. */
  zeroPositions?: number;
  /** For a transcoder: the point that it predicts, absent if not recorded, and its name in the file. */
  writes?: string;
  hookOut?: string;
}

/**
 * A sparse dictionary in the common form that all layouts are converted to: h = W_enc (n(x) - subtract b_dec) +
 * b_enc, f by the activation, y = n^-1(f W_dec + b_dec); n is the row scaling. Scale factors that a layout stores
 * separately are folded into the weights. A transcoder predicts another point of the same block: y = f W_dec + b_dec +
 * W_skip x.
 */
export interface Dictionary {
  layout: string;
  activation: Activation;
  hidden: number;
  features: number;
  /** For `topk` and `topk_raw`. */
  k: number;
  rowScaling: RowScaling;
  subtractBias: boolean;
  /** [features, hidden] */
  encoder: Float32Array;
  /** [features] */
  encoderBias: Float32Array;
  /** [features, hidden]; of a cross-layer transcoder in pieces, see {@link blocks}. */
  decoder: Float32Array | RowStream;
  /** [hidden] */
  decoderBias: Float32Array;
  /** [features], for `jumprelu`. */
  threshold?: Float32Array;
  /** [features], for `gated`. */
  gain?: Float32Array;
  /** [features], for `gated`. */
  magnitudeBias?: Float32Array;
  /** Predicts another point than the one it reads. */
  transcoder?: boolean;
  /**
   * For one block of a cross-layer transcoder: number of blocks whose points its features write into, from its own on. The
   * decoder is then a stream of [features, blocks, hidden], because it may be larger than memory, and y is a part of each
   * block's point.
   */
  blocks?: number;
  /** [hidden, hidden], for a transcoder: row i is of output i. */
  skip?: Float32Array;
  origin: DictionaryOrigin;
  /** Notes for users on how the file was read, one sentence each. */
  notes: string[];
}

/** The arrays of a file, read on demand. */
export interface TensorSource {
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  read(name: string): Promise<Float32Array>;
  /** Entries `from` to `end` of an array's first dimension; absent if arrays are in memory. */
  rows?(name: string, from: number, end: number): Promise<Float32Array>;
}

/** What a layout's reader returns; absent fields have the values of {@link plain}. */
export type ReadLayout = Omit<Dictionary, keyof ReturnType<typeof plain>> & Partial<Dictionary>;

/** The properties of a dictionary whose layout does not set them. */
export function plain() {
  const notes: string[] = [];
  return {
    k: 0,
    rowScaling: "none" as RowScaling,
    subtractBias: false,
    origin: {} as DictionaryOrigin,
    notes,
  };
}

type Weights = Pick<Dictionary, "hidden" | "features" | "encoder" | "encoderBias" | "decoderBias"> & {
  decoder: Float32Array;
};

/** The names of a layout's weights, and which of its matrices the file stores as [hidden, features]. */
interface WeightNames extends Record<"encoder" | "encoderBias" | "decoder" | "decoderBias", string> {
  transposed: "encoder" | "decoder" | "neither";
}

/** Two linear maps of PyTorch: encoder.weight [F, d], decoder.weight [d, F]. */
export const linearMaps = {
  encoder: "encoder.weight",
  encoderBias: "encoder.bias",
  decoder: "decoder.weight",
  decoderBias: "decoder.bias",
  transposed: "decoder",
} as const satisfies WeightNames;

/** SAELens and others: W_enc [d, F], W_dec [F, d]. */
export const factors = {
  encoder: "W_enc",
  encoderBias: "b_enc",
  decoder: "W_dec",
  decoderBias: "b_dec",
  transposed: "encoder",
} as const satisfies WeightNames;

/** The arrays of a layout, checked by name and shape as they are read. */
export class Arrays {
  constructor(
    private readonly source: TensorSource,
    private readonly layout: string,
  ) {}

  has(name: string): boolean {
    return this.source.shapes.has(name);
  }

  shape(name: string): readonly number[] {
    const shape = this.source.shapes.get(name);
    if (shape !== undefined) return shape;
    throw new FormatError(
      `Dictionaries of the layout ${this.layout} have an array ${name}; this file has ` +
        `${[...this.source.shapes.keys()].slice(0, 12).map(quoted).join(", ") || "none"}.`,
    );
  }

  /** A dictionary's weights, its matrices as [features, hidden]. */
  async weights(names: WeightNames): Promise<Weights> {
    const [rows, columns] = this.matrix(names.encoder);
    const [features, hidden] = names.transposed === "encoder" ? [columns, rows] : [rows, columns];
    const matrix = (part: "encoder" | "decoder") =>
      names.transposed === part
        ? this.transposed(names[part], features, hidden)
        : this.read(names[part], features, hidden);
    return {
      hidden,
      features,
      encoder: await matrix("encoder"),
      encoderBias: await this.read(names.encoderBias, features),
      decoder: await matrix("decoder"),
      decoderBias: await this.read(names.decoderBias, hidden),
    };
  }

  /** Rows and columns of a matrix. */
  matrix(name: string): [rows: number, columns: number] {
    const [rows, columns, ...more] = this.shape(name);
    if (rows === undefined || columns === undefined || more.length > 0 || rows === 0 || columns === 0) {
      throw new FormatError(`${name} is not a matrix: its shape is [${this.shape(name).join(", ")}].`);
    }
    return [rows, columns];
  }

  async read(name: string, ...wanted: number[]): Promise<Float32Array> {
    this.#check(name, wanted);
    return this.source.read(name);
  }

  /** An array in pieces of whole entries of its first dimension. */
  stream(name: string, ...wanted: number[]): RowStream {
    this.#check(name, wanted);
    const [count = 0, ...inner] = wanted;
    const width = inner.reduce((product, length) => product * length, 1);
    const { source } = this;
    return rowStream(count, width, async (from, end) =>
      source.rows === undefined
        ? (await source.read(name)).subarray(from * width, end * width)
        : source.rows(name, from, end),
    );
  }

  #check(name: string, wanted: readonly number[]): void {
    const shape = this.shape(name);
    if (shape.length !== wanted.length || shape.some((length, i) => length !== wanted[i])) {
      throw new FormatError(`${name} has the shape [${shape.join(", ")}]; expected [${wanted.join(", ")}].`);
    }
  }

  /** A matrix that the file stores as [columns, rows]. */
  async transposed(name: string, rows: number, columns: number): Promise<Float32Array> {
    return transpose(await this.read(name, columns, rows), columns, rows);
  }

  /** A single number, stored as [] or [1]. */
  async scalar(name: string): Promise<number> {
    const shape = this.shape(name);
    if (shape.reduce((product, length) => product * length, 1) !== 1) {
      throw new FormatError(`${name} has the shape [${shape.join(", ")}]; expected a single number.`);
    }
    return (await this.source.read(name))[0] as number;
  }
}

/** [rows, columns] to [columns, rows]. */
export function transpose(data: Float32Array, rows: number, columns: number): Float32Array {
  const out = new Float32Array(data.length);
  const block = 64;
  for (let top = 0; top < rows; top += block) {
    for (let left = 0; left < columns; left += block) {
      const bottom = Math.min(rows, top + block);
      const right = Math.min(columns, left + block);
      for (let row = top; row < bottom; row++) {
        for (let column = left; column < right; column++) {
          out[column * rows + row] = data[row * columns + column] as number;
        }
      }
    }
  }
  return out;
}

/** Multiplies row i of a matrix [factors, width] by factor i, in place. */
export function scaleRows(matrix: Float32Array, factors: ArrayLike<number>): void {
  const width = matrix.length / factors.length;
  for (let row = 0; row < factors.length; row++) {
    const factor = factors[row] as number;
    for (let i = row * width; i < (row + 1) * width; i++) matrix[i] = (matrix[i] as number) * factor;
  }
}

/** L2 length of each row of a matrix [rows, width]. */
export function rowLengths(matrix: Float32Array, rows: number): Float64Array {
  const width = matrix.length / rows;
  return Float64Array.from({ length: rows }, (_, row) => {
    let sum = 0;
    for (let i = row * width; i < (row + 1) * width; i++) sum += (matrix[i] as number) ** 2;
    return Math.sqrt(sum);
  });
}

/**
 * Folds the norms of the decoder's rows into the encoder, which makes these unit vectors ("activations rescaled by
 * the decoder's norm").
 */
export function foldDecoderLengths(
  parts: Pick<Weights, "encoder" | "encoderBias" | "decoder" | "features">,
): void {
  const lengths = rowLengths(parts.decoder, parts.features);
  if (lengths.some((length) => !(length > 0))) {
    throw new FormatError("A decoder row is zero, so its feature cannot be rescaled by its norm.");
  }
  scaleRows(parts.encoder, lengths);
  scaleRows(parts.encoderBias, lengths);
  scaleRows(
    parts.decoder,
    lengths.map((length) => 1 / length),
  );
}

/**
 * TransformerLens hooks within a block and tapline's names for these points. Attention and MLP outputs are taken
 * after the norms that models like Gemma 2 apply to them.
 */
const innerHooks: Readonly<Record<string, string>> = {
  hook_resid_post: "block_out",
  hook_resid_mid: "mid",
  hook_attn_out: "attn_out",
  hook_mlp_out: "ffn_out",
  "mlp.hook_in": "ffn_in",
  "ln2.hook_out": "ffn_in",
};

/**
 * The block and point of a TransformerLens hook or a transformers module.
 * @throws FormatError for a hook that is not a point of a block
 */
export function placeOfHook(hook: string): { layer: number; point: string } {
  const [, block, name] = /^blocks\.(\d{1,3})\.((?:mlp\.|ln2\.)?hook_\w{1,40})$/.exec(hook) ?? [];
  const layer = Number(block);
  if (name === "hook_resid_pre") {
    return layer > 0 ? { layer: layer - 1, point: "block_out" } : { layer, point: "block_in" };
  }
  const point = name === undefined ? undefined : innerHooks[name];
  if (point !== undefined) return { layer, point };
  const [, module, norm] =
    /^(?:model\.|language_model\.|transformer\.|gpt_neox\.)*(?:layers|h)\.(\d{1,3})(?:\.(post_feedforward_layernorm))?(?:\.output)?$/.exec(
      hook,
    ) ?? [];
  // Gemma 2 and 3 add the output of this norm to the residual stream.
  if (module !== undefined) {
    return { layer: Number(module), point: norm === undefined ? "block_out" : "ffn_out" };
  }
  throw new FormatError(
    `The dictionary reads ${quoted(hook)}; supported are block outputs (blocks.N.hook_resid_post, layers.N) and blocks.N.hook_resid_pre, hook_resid_mid, hook_attn_out, hook_mlp_out and mlp.hook_in.`,
  );
}

/** An object from a configuration file. */
export type Settings = Readonly<Record<string, unknown>>;

/** The settings of a configuration file; their types are checked when they are read. */
export function settingsOf(value: unknown, file: string): Settings {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Settings;
  throw new FormatError(`${file} is not a JSON object.`);
}

/** A configuration value as shown in an error, without its possibly deeply nested contents. */
function shown(value: unknown): string {
  if (typeof value !== "object" || value === null) return quoted(JSON.stringify(value));
  return Array.isArray(value) ? "a list" : "an object";
}

export function textOf(settings: Settings, ...names: string[]): string | undefined {
  const found = names.map((name) => settings[name]).find((value) => value !== undefined && value !== null);
  if (found === undefined || typeof found === "string") return found;
  throw new FormatError(`${names[0]} in the configuration is ${shown(found)}, not a string.`);
}

export function numberOf(settings: Settings, ...names: string[]): number | undefined {
  const found = names.map((name) => settings[name]).find((value) => value !== undefined && value !== null);
  if (found === undefined || (typeof found === "number" && Number.isFinite(found))) return found;
  throw new FormatError(`${names[0]} in the configuration is ${shown(found)}, not a number.`);
}

export function flagOf(settings: Settings, name: string): boolean | undefined {
  const found = settings[name];
  if (found === undefined || found === null) return undefined;
  if (typeof found === "boolean") return found;
  throw new FormatError(`${name} in the configuration is ${shown(found)}, not true or false.`);
}

/** @throws FormatError unless k is from 1 to the number of features */
export function checkedK(k: number | undefined, features: number): number {
  if (k !== undefined && Number.isInteger(k) && k >= 1 && k <= features) return k;
  throw new FormatError(
    k === undefined
      ? "The dictionary keeps its k most active features, but no file records k."
      : `k is ${k}; it must be from 1 to ${features}.`,
  );
}
