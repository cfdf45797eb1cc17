import { readFile } from "node:fs/promises";
import { readArrays } from "../client/arrays.js";
import { bootstrap, type Measured } from "../findings/uncertainty.js";
import type { Survival } from "./result.js";

/** A dictionary's active features on texts, from the artifact of a features job. */
export interface ActiveFeatures {
  tokens: ArrayLike<number>;
  /** By text, the first token; then the number of all tokens. */
  starts: ArrayLike<number>;
  /** By token, the first of its features in `indices`; then the number of all. */
  pointers: ArrayLike<number>;
  indices: ArrayLike<number>;
  /** Activations, in the order of `indices`. */
  values: ArrayLike<number>;
}

/** Dead features that a result lists. */
export const mostListed = 20;

/** Features with at least this correlation count as correlated. */
export const leastCorrelation = 0.9;

export async function readActiveFeatures(path: string): Promise<ActiveFeatures> {
  const arrays = readArrays(await readFile(path));
  const of = (name: string) => arrays.get(name)!.data;
  return {
    ...{ tokens: of("token_ids"), starts: of("text_starts") },
    ...{ pointers: of("pointers"), indices: of("indices"), values: of("values") },
  };
}

/** Sums over tokens of one feature's activations x in the reference and y in the form. */
interface Sums {
  /** Tokens on which it is active in the reference, and in both models. */
  reference: number;
  both: number;
  x: number;
  y: number;
  xx: number;
  yy: number;
  xy: number;
}

type SurvivalFigures = Pick<
  Survival,
  "features" | "least" | "surviving" | "died" | "recall" | "correlation" | "correlated" | "dead"
>;

/**
 * Which features of the reference are still active in a form, on the same tokens, and how their activations correlate over
 * all tokens; inactive counts as 0.
 * @param options.least tokens on which a feature has to be active in the reference
 * @param options.first tokens at the start of each text that do not count: 1 for models that add a BOS token
 */
export function survivalOf(
  reference: ActiveFeatures,
  form: ActiveFeatures,
  options: { least: number; first: number; resamples: number; seed: number },
): SurvivalFigures {
  const { least, first, resamples, seed } = options;
  const texts = reference.starts.length - 1;
  const lengths = Array.from(
    { length: texts },
    (_, text) => (reference.starts[text + 1] as number) - (reference.starts[text] as number) - first,
  );
  const all = [...sumsByText(reference, form, first)].map(([feature, byText]) => {
    const parts = [...byText];
    const whole = (of: (sums: Sums) => number) => parts.reduce((total, [, sums]) => total + of(sums), 0);
    return { feature, parts, reference: whole((sums) => sums.reference), both: whole((sums) => sums.both) };
  });
  const counted = all.filter((one) => one.reference >= least);
  const figures = bootstrap(texts, { resamples, seed, centred: true }, (times) => {
    const tokens = lengths.reduce((sum, length, text) => sum + length * (times[text] as number), 0);
    const [shares, correlations]: [number[], number[]] = [[], []];
    for (const { parts } of counted) {
      const sums = weighted(parts, times);
      if (sums.reference === 0) continue;
      shares.push(sums.both / sums.reference);
      const correlation = correlationOf(sums, tokens);
      if (correlation !== null) correlations.push(correlation);
    }
    const share = (values: number[], is: (value: number) => boolean) =>
      values.filter(is).length / values.length;
    const mean = (values: number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;
    return [
      share(shares, (one) => one >= 0.5),
      share(shares, (one) => one === 0),
      mean(shares),
      mean(correlations),
      share(correlations, (one) => one >= leastCorrelation),
    ];
  });
  // Shares and a correlation end at 1; at 0 or at -1, the correlation alone.
  const [surviving, died, recall, correlation, correlated] = figures.map(({ value, low, high }, at) => ({
    ...{ value, low: Math.max(at === 3 ? -1 : 0, low), high: Math.min(1, high) },
  })) as [Measured, Measured, Measured, Measured, Measured];
  const dead = counted
    .filter(({ both }) => both === 0)
    .sort((a, b) => b.reference - a.reference || a.feature - b.feature)
    .slice(0, mostListed)
    .map(({ feature, reference: tokens }) => ({ feature, tokens }));
  return { features: counted.length, least, surviving, died, recall, correlation, correlated, dead };
}

/** By feature and text. @throws Error if the tokens differ */
function sumsByText(
  reference: ActiveFeatures,
  form: ActiveFeatures,
  first: number,
): Map<number, Map<number, Sums>> {
  const sums = new Map<number, Map<number, Sums>>();
  const of = (feature: number, text: number) => {
    const byText = sums.get(feature) ?? new Map<number, Sums>();
    const known = byText.get(text) ?? { reference: 0, both: 0, x: 0, y: 0, xx: 0, yy: 0, xy: 0 };
    sums.set(feature, byText.set(text, known));
    return known;
  };
  for (let text = 0; text + 1 < reference.starts.length; text++) {
    const end = reference.starts[text + 1] as number;
    for (let token = (reference.starts[text] as number) + first; token < end; token++) {
      if (reference.tokens[token] !== form.tokens[token])
        throw new Error("The artifacts have different tokens.");
      const there = activeAt(form, token);
      for (const [feature, x] of activeAt(reference, token)) {
        const own = of(feature, text);
        own.reference++;
        own.both += there.has(feature) ? 1 : 0;
        own.x += x;
        own.xx += x * x;
        own.xy += x * (there.get(feature) ?? 0);
      }
      for (const [feature, y] of there) {
        const own = of(feature, text);
        own.y += y;
        own.yy += y * y;
      }
    }
  }
  return sums;
}

function weighted(parts: readonly (readonly [number, Sums])[], times: ArrayLike<number>): Sums {
  const total: Sums = { reference: 0, both: 0, x: 0, y: 0, xx: 0, yy: 0, xy: 0 };
  for (const [text, sums] of parts) {
    const weight = times[text] as number;
    if (weight === 0) continue;
    for (const name of Object.keys(total) as (keyof Sums)[]) total[name] += weight * sums[name];
  }
  return total;
}

/** Pearson's; 0 if the feature does not vary in the form, as a dead one; null if it does not vary in the reference. */
function correlationOf({ x, y, xx, yy, xy }: Sums, tokens: number): number | null {
  const [one, two] = [tokens * xx - x * x, tokens * yy - y * y];
  // Rounding leaves a little of what does not vary.
  if (one <= 1e-12 * tokens * xx) return null;
  if (two <= 1e-12 * tokens * yy) return 0;
  return (tokens * xy - x * y) / Math.sqrt(one * two);
}

/** A token's features and their activations. */
function activeAt({ pointers, indices, values }: ActiveFeatures, token: number): Map<number, number> {
  const [from, to] = [pointers[token] as number, pointers[token + 1] as number];
  const found = new Map<number, number>();
  for (let at = from; at < to; at++) found.set(indices[at] as number, values[at] as number);
  return found;
}
