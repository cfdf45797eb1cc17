import { percent } from "./numbers.js";
import type { Span } from "./shapes.js";

/** What a result says, in a sentence for a colleague, and what its controls allow to conclude from it. */
export interface Finding {
  says: string;
  controls: string;
}

/** Held-out examples below which no figure is a finding. */
export const leastExamples = 20;

/** Puts what matters most first: figures of few examples conclude nothing. */
export function cautiously(says: string, examples: number): string {
  return examples < leastExamples ? `Too few held-out examples to conclude (${examples}). ${says}` : says;
}

/** A span of measured layers in words, which claims nothing of a layer between them; `layers` ascend. */
export function layersOf({ from, to }: Span, layers: readonly number[]): string {
  if (from === to) return `layer ${layers[from]}`;
  return `${whole({ from, to }, layers) ? "" : "the measured "}layers ${layers[from]} to ${layers[to]}`;
}

/** Whether every layer of a span was measured. */
function whole({ from, to }: Span, layers: readonly number[]): boolean {
  return (layers[to] as number) - (layers[from] as number) === to - from;
}

/**
 * Where a span of measured layers is, as the beginning of a clause: `at every layer measured`, `up to layer 4`, `from layer 5
 * on` with the layers before it that were not measured, or `at layers 2 to 4`. With layers inside it that were not measured:
 * `at the measured layers up to 4`.
 */
export function atLayers({ from, to }: Span, layers: readonly number[]): string {
  const last = layers.length - 1;
  if (from === 0 && to === last) return last === 0 ? `at layer ${layers[0]}` : "at every layer measured";
  const start = layers[from] as number;
  const skipped = from === 0 ? 0 : start - 1 - (layers[from - 1] as number);
  const gap =
    skipped === 0
      ? ""
      : ` (${skipped === 1 ? `layer ${start - 1} was` : `layers ${start - skipped} to ${start - 1} were`} not measured)`;
  const all = whole({ from, to }, layers);
  if (from === to) return `at layer ${start}${gap}`;
  if (from === 0) return all ? `up to layer ${layers[to]}` : `at the measured layers up to ${layers[to]}`;
  if (to < last) return `at ${layersOf({ from, to }, layers)}${gap}`;
  return all ? `from layer ${start} on${gap}` : `at the measured layers from ${start} on${gap}`;
}

/** `0.95`, or `0.9 to 0.95` if the values differ as written. */
export function rangeOf(values: readonly number[], write: (value: number) => string): string {
  const [low, high] = [write(Math.min(...values)), write(Math.max(...values))];
  return low === high ? low : `${low} to ${high}`;
}

/** A share in percent as one says it: whole percents, unless it is close to 0 or 1. */
export function share(value: number): string {
  if (Math.abs(value) >= 0.1 && Math.abs(value) <= 0.99) return `${Math.round(100 * value)} %`;
  return percent(value).replace(/^[<>] -?/, "under ");
}

/** Differences of probabilities or shares, in points. */
export function points(...differences: readonly number[]): string {
  const written = rangeOf(differences.map(Math.abs), (value) => Number((100 * value).toFixed(1)).toString());
  return `${written} ${written === "1" ? "point" : "points"}`;
}

/** A sentence with its first letter in upper case. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
