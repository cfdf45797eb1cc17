import type { CardMeasure, CardMeasureName } from "../contracts/card.js";
import { cardLimits } from "../contracts/card-limits.js";
import { bootstrap } from "../findings/uncertainty.js";

/** A measure's value per item: a text, question, prompt or round; with the item's weight, such as its tokens. */
export interface Items {
  values: readonly number[];
  /** Default: every item weighs the same. */
  weights?: readonly number[];
}

/** By measure, in one arm. */
export type ArmItems = { [name in CardMeasureName]?: Items };

/**
 * The mean over items with its 95 % bootstrap interval, and the paired difference from the unedited model: items are
 * resampled with replacement, with the same draws for both.
 * @param base the same items on the unedited model; undefined for that model itself
 * @throws RangeError if the numbers of items differ
 */
export function measured(own: Items, base: Items | undefined, seed: number): CardMeasure {
  const n = own.values.length;
  if (base !== undefined && base.values.length !== n) {
    throw new RangeError(`A measure has ${n} items, and ${base.values.length} on the unedited model.`);
  }
  const options = { resamples: cardLimits.resamples, seed };
  const [whole, difference] = bootstrap(n, options, (times) => {
    const mean = meanOf(own, times);
    return base === undefined ? [mean] : [mean, mean - meanOf(base, times)];
  });
  return {
    ...(whole as NonNullable<typeof whole>),
    n,
    ...(difference !== undefined && { change: difference }),
  };
}

function meanOf({ values, weights }: Items, times: Uint32Array): number {
  let sum = 0;
  let total = 0;
  for (const [index, value] of values.entries()) {
    const weight = (times[index] as number) * (weights?.[index] ?? 1);
    sum += weight * value;
    total += weight;
  }
  return sum / total;
}

/** Log-probabilities of a row of logits. */
export function logSoftmax(logits: Float32Array): Float64Array {
  let most = Number.NEGATIVE_INFINITY;
  for (const value of logits) if (value > most) most = value;
  let sum = 0;
  for (const value of logits) sum += Math.exp(value - most);
  const shift = most + Math.log(sum);
  return Float64Array.from(logits, (value) => value - shift);
}

/** KL(p ‖ q) in nats, of two rows of log-probabilities. */
export function divergence(p: Float64Array, q: Float64Array): number {
  let sum = 0;
  for (const [index, value] of p.entries()) {
    const share = Math.exp(value);
    if (share > 0) sum += share * (value - (q[index] as number));
  }
  return sum;
}
