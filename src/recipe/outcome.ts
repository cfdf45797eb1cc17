import type { Operation } from "../contracts/index.js";
import type { Expected, Recipe, RecipeModel } from "../contracts/recipe.js";
import type { LiveStep } from "./live.js";
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

/** An experiment of a Lab that a step asks for. */
export interface LabTask {
  id: string;
  what: string;
  operation: Operation;
  settings: Record<string, unknown>;
}

/** What a step asks of a serving model. */
export interface LiveTask {
  id: string;
  what: string;
  live: LiveStep;
}

/** What a recipe's steps ask for on a model, in order. */
export function tasksOf(recipe: Recipe, model: RecipeModel): Array<LabTask | LiveTask> {
  return recipe.steps.map(({ id, what, request, live }) => {
    const layers = model.layers?.[id];
    if (live !== undefined) return { id, what, live: atLayers(live as LiveStep, layers) };
    const { operation, ...settings } = { ...request, ...(layers === undefined ? {} : { layers }) };
    const revision = model.revision === undefined ? {} : { revision: model.revision };
    return { id, what, operation: operation as Operation, settings: { ...settings, ...revision } };
  });
}

function atLayers(live: LiveStep, layers: number[] | undefined): LiveStep {
  if (layers === undefined) return live;
  if ("vector" in live) return { vector: { ...live.vector, layers } };
  return "probe" in live ? { probe: { ...live.probe, layer: layers[0] as number } } : live;
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
