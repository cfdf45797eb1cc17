import { type Operation, UserError } from "../contracts/index.js";
import type { Expected, Recipe, RecipeModel } from "../contracts/recipe.js";
import { publicName } from "../study/index.js";
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

/**
 * The model of the list that a name means, or one that the recipe does not know.
 * @param variants forms of it in place of the recipe's, by the names that steps call them
 */
export function chooseModel(
  { models }: Recipe,
  named: string | undefined,
  variants: Readonly<Record<string, string>> = {},
): RecipeModel {
  const known = named === undefined ? models[0] : models.find(({ id }) => id === named);
  const model = known ?? { id: named as string, tested: false };
  const forms = Object.entries(variants).map(([name, id]) => [name, { id }] as const);
  return forms.length === 0
    ? model
    : { ...model, variants: { ...model.variants, ...Object.fromEntries(forms) } };
}

/** What a recipe ran on: the model, or those of its forms that steps are about. */
export function modelText({ steps }: Recipe, { id, variants = {} }: RecipeModel): string {
  const forms = [...new Set(steps.map(({ variant }) => variant))];
  return forms
    .map((form) => (form === undefined ? publicName(id) : `${form}: ${publicName(variants[form]?.id ?? id)}`))
    .join(", ");
}

/** An experiment of a Lab that a step asks for. */
export interface LabTask {
  id: string;
  what: string;
  /** The model, or the form of it that the step is about. */
  model: string;
  operation: Operation;
  settings: Record<string, unknown>;
}

/** What a step asks of a serving model. */
export interface LiveTask {
  id: string;
  what: string;
  live: LiveStep;
}

/**
 * What a recipe's steps ask for on a model, in order.
 * @throws UserError where a step is about a form of the model that nobody named
 */
export function tasksOf(recipe: Recipe, model: RecipeModel): Array<LabTask | LiveTask> {
  return recipe.steps.map(({ id, what, variant, request, live }) => {
    const layers = model.layers?.[id];
    if (live !== undefined) return { id, what, live: atLayers(live as LiveStep, layers) };
    const { operation, ...settings } = { ...request, ...(layers === undefined ? {} : { layers }) };
    const form = variant === undefined ? model : model.variants?.[variant];
    if (form === undefined) {
      throw new UserError(`Step ${id} runs on ${variant} of the model: name it with --variant ${variant}=….`);
    }
    const revision = form.revision === undefined ? {} : { revision: form.revision };
    return {
      id,
      what,
      model: form.id,
      operation: operation as Operation,
      settings: { ...settings, ...revision },
    };
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
