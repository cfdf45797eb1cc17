import { budgetLimits } from "../contracts/budget-limits.js";
import type { Reading } from "./readings.js";

/** Clean repeats that a false-alarm rate needs, besides those that set the scale. */
export function repeatsFor(falseAlarms: number): number {
  return Math.max(19, Math.ceil(1 / falseAlarms) - 1);
}

/**
 * The greatest deviation that each reading may have. Some clean repeats, and the accepted forms, set the scale of each
 * reading. The others each give their greatest deviation as a multiple of that scale: the repeat to be judged is
 * exchangeable with them, so that the ⌈(1 − α)(n + 1)⌉-th smallest of n is exceeded by at most a share α of clean checks
 * (conformal prediction; Vovk, Gammerman & Shafer, 2005), over all readings together.
 * @param scale the greatest deviation per reading of each repeat that sets the scale
 * @param accepted the same of each accepted form
 * @param repeats the same of the other repeats
 */
export function thresholdsOf(
  readings: readonly Pick<Reading, "kind">[],
  {
    scale,
    accepted,
    repeats,
    falseAlarms,
  }: { scale: number[][]; accepted: number[][]; repeats: number[][]; falseAlarms: number },
): { noise: number; threshold: number }[] {
  const typical = readings.map((_, index) =>
    Math.max(
      budgetLimits.rounding,
      ...scale.map((maxima) => maxima[index] as number),
      ...accepted.map((maxima) => budgetLimits.margin * (maxima[index] as number)),
    ),
  );
  const scales = typical.map((value, index) =>
    Math.max(value, budgetLimits.floor[(readings[index] as Reading).kind]),
  );
  const multiples = repeats
    .map((maxima) => Math.max(...maxima.map((value, index) => value / (scales[index] as number))))
    .sort((a, b) => a - b);
  const rank = Math.min(multiples.length, Math.ceil((1 - falseAlarms) * (multiples.length + 1)));
  const factor = Math.max(1, multiples[rank - 1] ?? 1);
  return scales.map((value, index) => ({
    noise: (typical[index] as number) * factor,
    threshold: value * factor,
  }));
}
