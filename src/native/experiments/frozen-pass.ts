// What graphs of a pass share whose attention weights and norms are fixed.

import { checkInteger, invalid } from "../check.js";

/**
 * A token's logit at a position, before a soft cap, with the final norm's scale fixed, minus another token's, or by default
 * minus the mean of all logits; with the weight of its influence among the targets, by default 1.
 */
export interface GraphTarget {
  position: number;
  token: number;
  minus?: number;
  weight?: number;
}

/** The edges of a graph. */
export interface GraphEdges {
  /** float32 [targets + nodes, columns]: what each column adds to each row's value. */
  parts: Float32Array;
  columns: number;
  // By row: the value is the sum of its parts and its constant.
  values: Float64Array;
  constants: Float64Array;
  /** The sum's distance from the value, over the L2 norm of the parts and the value. */
  residuals: Float64Array;
}

/** @throws NativeError INVALID_ARGUMENT */
export function checkTargets(targets: readonly GraphTarget[]): void {
  if (!Array.isArray(targets)) throw invalid("Targets must be an array.");
  for (const { position, token, minus, weight = 1 } of targets as GraphTarget[]) {
    checkInteger("position", position ?? null, 0);
    checkInteger("token", token ?? null, 0);
    if (minus !== undefined) checkInteger("minus", minus, 0);
    if (!Number.isFinite(weight)) throw invalid("A target's weight must be a finite number.");
  }
}
