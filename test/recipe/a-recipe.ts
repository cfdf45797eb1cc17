/** A recipe as people write it, changed and checked, and the sentence with which something is refused. */
import { checkRecipe } from "../../src/recipe/check.js";

/** The sentence with which something is refused. */
export function refusal(work: () => unknown): string {
  try {
    return `accepted: ${JSON.stringify(work())}`;
  } catch (error) {
    return (error as Error).message;
  }
}

export const inspect = { operation: "inspect", prompt: "The capital of France is", layers: [7] };

export const base = () => ({
  schema_version: 1,
  title: "A <title>",
  paper: { title: "A paper", url: "https://example.org" },
  claim: "A claim.",
  differs: "Everything.",
  models: [
    { id: "demo", tested: true },
    { id: "owner/name", revision: "abc", tested: false },
  ] as Record<string, unknown>[],
  data: { what: "One sentence.", licence: "MIT" },
  steps: [
    { id: "one", what: "first", request: { ...inspect } },
    { id: "two", what: "second", request: { ...inspect } },
  ] as Record<string, unknown>[],
  expected: [
    { id: "a", what: "figure a", value: { step: "one", path: "x" }, low: 1, source: "here" },
    { id: "b", what: "figure b", value: { step: "two", path: "x" }, high: 2, source: "there", control: true },
  ] as Record<string, unknown>[],
});

export type Base = ReturnType<typeof base>;

export const check = (change: (recipe: Base) => void = () => {}) => {
  const recipe = base();
  change(recipe);
  return checkRecipe(recipe);
};

export const told = (change: (recipe: Base) => void) => refusal(() => check(change));
