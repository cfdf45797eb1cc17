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

/** @throws NativeError INVALID_ARGUMENT unless every entry is an index */
export function checkIndices(what: string, list: unknown): void {
  if (!Array.isArray(list)) throw invalid(`${what} must be an array of indices.`);
  for (const one of list) checkInteger(`One of the ${what.toLowerCase()}`, one ?? null, 0);
}
