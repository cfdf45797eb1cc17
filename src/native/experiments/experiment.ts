import { checkInteger, invalid } from "../check.js";

/** A context of the addon, as an experiment sees it. */
export interface Passes {
  /** Hidden size of the model. */
  readonly hidden: number;
  /**
   * Calls a method of the addon's context, which `signal` can cancel.
   * @throws NativeError CANCELLED, and whatever the method reports
   */
  run<Found>(method: string, request: object, signal?: AbortSignal): Promise<Found>;
}

/** The k most probable tokens of each row, most probable first: both arrays are [rows, k], row by row. */
export interface TopTokens {
  k: number;
  tokenIds: Int32Array;
  probabilities: Float32Array;
  /** [rows], of the lens's targets: 0 where a row has none. */
  targetProbabilities?: Float32Array;
  /** [rows]; 1 is the most probable token, ties by token id; 0 where a row has no target. */
  targetRanks?: Int32Array;
}

/**
 * A lens's translation in a file: byte offsets of its arrays. A row h of a block output becomes matrix . h + bias, plus h
 * with `residual`; then the model's final norm and head.
 */
export interface TranslatorPlaces {
  path: string;
  /** The matrix is IEEE binary16, else float32; a bias is float32. */
  half: boolean;
  /** [hidden, hidden], one row per output. */
  matrix: number;
  /** [hidden]. Default: none. */
  bias?: number;
  residual: boolean;
}

/** The lens of one place's rows: the most probable tokens, and on request entropies and divergences. */
export interface LensReading extends TopTokens {
  /** [rows], nats. */
  entropies?: Float32Array;
  /** [rows], nats: KL(output, reading). */
  divergences?: Float32Array;
}

/** @throws NativeError INVALID_ARGUMENT unless every entry is an index */
export function checkIndices(what: string, list: unknown): void {
  if (!Array.isArray(list)) throw invalid(`${what} must be an array of indices.`);
  for (const one of list) checkInteger(`One of the ${what.toLowerCase()}`, one ?? null, 0);
}
