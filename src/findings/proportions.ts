/** Intervals for shares of counted things, which also hold where a bootstrap has nothing to draw from: at 0 and 1. */
import type { Interval } from "./uncertainty.js";

/** The 97.5 % quantile of the standard normal distribution. */
const z = 1.959963984540054;

/**
 * Wilson's 95 % score interval of a share (Wilson, 1927), without continuity correction: never empty, never outside 0 to 1.
 * @param share right over n
 */
export function wilson(share: number, n: number): Interval {
  const middle = (share + z ** 2 / (2 * n)) / (1 + z ** 2 / n);
  const half = (z / (1 + z ** 2 / n)) * Math.sqrt((share * (1 - share)) / n + z ** 2 / (4 * n ** 2));
  // At 0 and 1 the exact bound is the share itself; rounding would miss it by 1e-17.
  return { low: share === 0 ? 0 : middle - half, high: share === 1 ? 1 : middle + half };
}

/**
 * A 95 % interval of an AUROC that is 1 or 0, where resampling gives a single point. min(ones, zeros) disjoint pairs are
 * independent, and each is ranked right with probability AUROC; that all of them are (or none is) bounds it as
 * Clopper and Pearson (1934) bound a share. Conservative: the pairs that share an example are not used.
 */
export function aurocAtEdge(auc: 0 | 1, ones: number, zeros: number): Interval {
  const reach = 0.025 ** (1 / Math.min(ones, zeros));
  return auc === 1 ? { low: reach, high: 1 } : { low: 0, high: 1 - reach };
}
