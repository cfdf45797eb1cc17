import type { Expected, Recipe, RecipeModel } from "../contracts/recipe.js";
import { measure, type Results } from "./measure.js";

/** One expected figure, and what was seen. */
export interface Outcome {
  expected: Expected;
  /** The range that it had to keep to: the model's own, where it has one. */
  low: number | undefined;
  high: number | undefined;
  source: string;
  seen: number;
  held: boolean;
}

/** The model of the list that a name means, or one that the recipe does not know. */
export function chooseModel({ models }: Recipe, named: string | undefined): RecipeModel {
  if (named === undefined) return models[0] as RecipeModel;
  return models.find(({ id }) => id === named) ?? { id: named, tested: false };
}

/** The bodies of a recipe's requests for a model, in order. */
export function requestsOf(recipe: Recipe, model: RecipeModel) {
  return recipe.steps.map(({ id, what, request }) => {
    const layers = model.layers?.[id];
    const { operation, ...settings } = { ...request, ...(layers === undefined ? {} : { layers }) };
    const revision = model.revision === undefined ? {} : { revision: model.revision };
    return { id, what, operation, settings: { ...settings, ...revision } };
  });
}

/** Every expected figure beside what the steps left. @throws UserError */
export function outcomesOf(recipe: Recipe, model: RecipeModel, results: Results): Outcome[] {
  return recipe.expected.map((expected) => {
    const { low, high, source } = model.expected?.[expected.id] ?? expected;
    const seen = measure(expected.value, results);
    return {
      expected,
      low,
      high,
      source,
      seen,
      held: seen >= (low ?? -Infinity) && seen <= (high ?? Infinity),
    };
  });
}

/** A range in words. */
export function rangeText({ low, high }: Pick<Outcome, "low" | "high">): string {
  if (low === undefined) return `at most ${high}`;
  return high === undefined ? `at least ${low}` : `${low} to ${high}`;
}

/** Up to four digits, as tables show a figure. */
export function figureText(value: number): string {
  return `${Number(value.toPrecision(4))}`;
}
