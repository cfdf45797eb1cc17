import { leastEffect, type Trial } from "./dose.js";
import { atLayers, layersOf, points, rangeOf } from "./finding.js";
import { mean, meanOfKnown } from "./numbers.js";
import { bestSpan } from "./shapes.js";

/** One layer's trials of an intervention, in the order of its strengths. */
interface Tried {
  layer: number;
  trials: readonly Trial[];
}

/**
 * At which layers a direction changes the probability more than random vectors do: where it steers, as measured. A random
 * vector that does half as much explains a change.
 */
export function gridFinding(tried: readonly Tried[]): string {
  const sorted = tried.filter(({ trials }) => trials.length > 0).toSorted((a, b) => a.layer - b.layer);
  if (sorted.length === 0) return "";
  const layers = sorted.map(({ layer }) => layer);
  const best = sorted.map(({ trials }) => strongest(trials));
  const own = best.map(({ change }) => change);
  if (Math.max(...own) === 0) {
    return "At no layer measured does the direction change the probability clearly more than random vectors do.";
  }
  const span = bestSpan(own);
  const alike = best.slice(span.from, span.to + 1);
  const randoms = alike.flatMap(({ random }) => random ?? []);
  const where = sorted.length === 1 ? atLayers(span, layers) : `most at ${layersOf(span, layers)}`;
  return (
    `The direction changes the probability ${where}: by ${points(...alike.map(({ change }) => change))} at strength ` +
    `${rangeOf(
      alike.map(({ strength }) => strength),
      String,
    )}` +
    (randoms.length === 0
      ? "; no random vector was tried."
      : `, random vectors by ${points(Math.max(...randoms))} at most.`)
  );
}

interface Effect {
  strength: number;
  change: number;
  random: number | undefined;
}

/**
 * The strength with the largest change that random vectors of this strength do not explain (very strong ones break every answer),
 * the mean over prompts, and the change by random vectors there; no change if there is no such strength.
 */
function strongest(trials: readonly Trial[]): Effect {
  const strengths = [...new Set(trials.map(({ strength }) => strength))];
  const found = strengths.map((strength): Effect => {
    const own = trials.filter((trial) => trial.strength === strength);
    const random = meanOfKnown(own.map(({ control }) => control?.delta));
    return {
      strength,
      change: Math.abs(mean(own.map(({ delta }) => delta))),
      random: random === undefined ? undefined : Math.abs(random),
    };
  });
  return found
    .filter(({ change, random }) => 2 * (random ?? 0) < change && change >= leastEffect)
    .reduce((a, b) => (b.change > a.change ? b : a), { strength: 0, change: 0, random: undefined });
}
