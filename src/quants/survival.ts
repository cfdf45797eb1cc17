import { readFile } from "node:fs/promises";
import { readArrays } from "../client/arrays.js";
import { bootstrap } from "../findings/uncertainty.js";
import type { Survival } from "./result.js";

/** A dictionary's active features on texts, from the artifact of a features job. */
export interface ActiveFeatures {
  tokens: ArrayLike<number>;
  /** By text, the first token; then the number of all tokens. */
  starts: ArrayLike<number>;
  /** By token, the first of its features in `indices`; then the number of all. */
  pointers: ArrayLike<number>;
  indices: ArrayLike<number>;
}

/** Dead features that a result lists. */
export const mostListed = 20;

export async function readActiveFeatures(path: string): Promise<ActiveFeatures> {
  const arrays = readArrays(await readFile(path));
  const of = (name: string) => arrays.get(name)!.data;
  return {
    ...{ tokens: of("token_ids"), starts: of("text_starts") },
    ...{ pointers: of("pointers"), indices: of("indices") },
  };
}

/** Of one feature in one text: tokens on which it is active in the reference, and in both models. */
interface Count {
  text: number;
  reference: number;
  both: number;
}

/**
 * Which features of the reference are still active in a form, on the same tokens.
 * @param options.least tokens on which a feature has to be active in the reference
 * @param options.first tokens at the start of each text that do not count: 1 for models that add a BOS token
 */
export function survivalOf(
  reference: ActiveFeatures,
  form: ActiveFeatures,
  options: { least: number; first: number; resamples: number; seed: number },
): Pick<Survival, "features" | "least" | "surviving" | "died" | "recall" | "dead"> {
  const { least, first, resamples, seed } = options;
  const texts = reference.starts.length - 1;
  const counts = new Map<number, Map<number, Count>>();
  for (let text = 0; text < texts; text++) {
    const end = reference.starts[text + 1] as number;
    for (let token = (reference.starts[text] as number) + first; token < end; token++) {
      if (reference.tokens[token] !== form.tokens[token])
        throw new Error("The artifacts have different tokens.");
      const there = new Set(activeAt(form, token));
      for (const feature of activeAt(reference, token)) {
        const known = counts.get(feature) ?? new Map<number, Count>();
        const count = known.get(text) ?? { text, reference: 0, both: 0 };
        count.reference++;
        count.both += there.has(feature) ? 1 : 0;
        counts.set(feature, known.set(text, count));
      }
    }
  }
  const all = [...counts].map(([feature, byText]) => {
    const parts = [...byText.values()];
    const sum = (of: (count: Count) => number) => parts.reduce((total, count) => total + of(count), 0);
    return { feature, parts, reference: sum((count) => count.reference), both: sum((count) => count.both) };
  });
  const counted = all.filter((one) => one.reference >= least);
  const [surviving, died, recall] = bootstrap(texts, { resamples, seed }, (times) => {
    const shares = counted.flatMap(({ parts }) => {
      let [active, both] = [0, 0];
      for (const count of parts) {
        active += (times[count.text] as number) * count.reference;
        both += (times[count.text] as number) * count.both;
      }
      return active === 0 ? [] : [both / active];
    });
    const share = (is: (recall: number) => boolean) => shares.filter(is).length / shares.length;
    const mean = shares.reduce((sum, one) => sum + one, 0) / shares.length;
    return [share((one) => one >= 0.5), share((one) => one === 0), mean];
  }) as [Survival["surviving"], Survival["died"], Survival["recall"]];
  const dead = counted
    .filter(({ both }) => both === 0)
    .sort((a, b) => b.reference - a.reference || a.feature - b.feature)
    .slice(0, mostListed)
    .map(({ feature, reference: tokens }) => ({ feature, tokens }));
  return { features: counted.length, least, surviving, died, recall, dead };
}

function activeAt({ pointers, indices }: ActiveFeatures, token: number): number[] {
  const [from, to] = [pointers[token] as number, pointers[token + 1] as number];
  return Array.from({ length: to - from }, (_, at) => indices[from + at] as number);
}
