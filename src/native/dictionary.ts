import type { NativeCancelToken } from "./binding.js";
import { cancellable } from "./cancel.js";
import { invalid } from "./check.js";
import { binding } from "./load.js";

/** Number types of a matrix in a file. */
export type WeightType = "f32" | "f16" | "bf16";

/**
 * A sparse dictionary in a file: byte offsets of its arrays, multiples of four; float32 unless noted otherwise.
 * h = W_enc (n(x) - subtract b_dec) + b_enc, f = activation(h), y = n^-1(f W_dec + b_dec); n is the row scaling.
 * A transcoder predicts the row of another point: y = f W_dec + b_dec + W_skip x.
 */
export interface DictionaryPlaces {
  path: string;
  activation: "relu" | "jumprelu" | "topk" | "topk_raw" | "gated";
  /** Scaled to length sqrt(hidden), or centred and divided by the standard deviation (N - 1) + 1e-5. */
  rowScaling: "none" | "constant_norm" | "layer_norm";
  subtractBias: boolean;
  hidden: number;
  features: number;
  /** For `topk` and `topk_raw`. */
  k: number;
  encoderType?: WeightType;
  decoderType?: WeightType;
  /** [features, hidden] */
  encoder: number;
  /** [features] */
  encoderBias: number;
  /** [features, hidden] */
  decoder: number;
  /** [hidden] */
  decoderBias: number;
  /** [features], for `jumprelu`. */
  threshold?: number;
  /** [features], for `gated`. */
  gain?: number;
  /** [features], for `gated`. */
  magnitudeBias?: number;
  /** It predicts the row of another point, whose scaling is not that of x. */
  transcoder?: boolean;
  /** [hidden, hidden], for a transcoder with a skip term. */
  skip?: number;
  /** Of a cross-layer transcoder: blocks that its features write into, from its own on; the decoder is [features, blocks, hidden]. */
  blocks?: number;
}

/** Active features, row by row: row i has those from pointers[i] to pointers[i + 1] - 1, ascending by feature. */
export interface SparseRows {
  /** [rows + 1] */
  pointers: Float64Array;
  indices: Int32Array;
  values: Float32Array;
}

/** The most active features of a row; ties by feature. */
export function strongestFeatures(
  { pointers, indices, values }: SparseRows,
  row: number,
  top: number,
): { feature: number; activation: number }[] {
  const [from, to] = [pointers[row] as number, pointers[row + 1] as number];
  const found = Array.from({ length: to - from }, (_, at) => ({
    feature: indices[from + at] as number,
    activation: values[from + at] as number,
  }));
  // The sort is stable, so ties stay ordered by feature.
  return found.sort((a, b) => b.activation - a.activation).slice(0, top);
}

interface Options {
  threads?: number;
  signal?: AbortSignal;
}

interface DictionaryBinding {
  encodeRows(options: object): Promise<SparseRows>;
  decodeRows(options: object): Promise<Float32Array>;
}

const native = binding<DictionaryBinding>;

/**
 * Finds the active features of rows.
 * @param rows [rows, hidden], row by row
 * @throws NativeError INVALID_ARGUMENT, CANCELLED, COMPUTE (a row is not finite), OUT_OF_MEMORY
 */
export function encodeRows(
  dictionary: DictionaryPlaces,
  rows: Float32Array,
  { threads, signal }: Options = {},
): Promise<SparseRows> {
  checkRows(rows, dictionary);
  return cancellable(signal, (cancel?: NativeCancelToken) =>
    native().encodeRows({ dictionary, rows, cancel, ...(threads !== undefined && { threads }) }),
  );
}

/**
 * Reconstructs rows from their active features.
 * @param rows the encoded rows; needed if the dictionary scales rows or has a skip term
 * @returns [rows, hidden]
 * @throws NativeError INVALID_ARGUMENT, CANCELLED, OUT_OF_MEMORY
 */
export function decodeRows(
  dictionary: DictionaryPlaces,
  sparse: SparseRows,
  rows: Float32Array,
  { threads, signal }: Options = {},
): Promise<Float32Array> {
  checkRows(rows, dictionary);
  return cancellable(signal, (cancel?: NativeCancelToken) =>
    native().decodeRows({ dictionary, ...sparse, rows, cancel, ...(threads !== undefined && { threads }) }),
  );
}

function checkRows(rows: unknown, { hidden }: DictionaryPlaces): void {
  if (!(rows instanceof Float32Array)) throw invalid("Rows must be a Float32Array.");
  if (rows.length % hidden === 0) return;
  throw invalid(`${rows.length} values cannot form rows of ${hidden}.`);
}
