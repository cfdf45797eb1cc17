import { defaults, type Operation, UserError } from "../contracts/index.js";
import type { Contrast, Expected, Recipe, RecipeModel, RecipeStep } from "../contracts/recipe.js";
import { publicName } from "../text/words.js";
import type { LiveStep } from "./live.js";
import { measure, type Results } from "./measure.js";
import { replaced } from "./placeholders.js";
import { keptKinds, variantsOf } from "./steps.js";

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
  // Forms in fewer bits are made of any model's file.
  const made = models[0]?.quantised;
  const model = known ?? {
    ...{ id: named as string, tested: false },
    ...(made !== undefined && { quantised: made }),
  };
  const forms = Object.entries(variants).map(([name, id]) => [name, { id }] as const);
  return forms.length === 0
    ? model
    : { ...model, variants: { ...model.variants, ...Object.fromEntries(forms) } };
}

/** What a recipe ran on: the model, or those of its forms that steps are about. */
export function modelText({ steps }: Recipe, { id, variants = {}, quantised = {} }: RecipeModel): string {
  const named = (form: string) => {
    const own = variants[form]?.id;
    return `${form}: ${own === undefined ? `${publicName(id)} in ${quantised[form]}` : publicName(own)}`;
  };
  // A contrast only looks at what others read.
  const about = steps.filter(({ contrast }) => contrast === undefined);
  const forms = about.flatMap((step) => [
    ...(step.variant === undefined ? [undefined] : []),
    ...variantsOf(step),
  ]);
  return [...new Set(forms)].map((form) => (form === undefined ? publicName(id) : named(form))).join(", ");
}

/** An experiment of a Lab that a step asks for. */
export interface LabTask {
  id: string;
  what: string;
  /** The model, or the form of it that the step is about. */
  model: string;
  operation: Operation;
  settings: Record<string, unknown>;
  /** Under which name what it trains is kept, and as what. */
  keep?: { name: string; kind: "dictionary" | "probe"; layer: number };
}

/** What a step asks of a serving model. */
export interface LiveTask {
  id: string;
  what: string;
  live: LiveStep;
}

/** What a step asks of an earlier one's result. */
export interface ContrastTask {
  id: string;
  what: string;
  contrast: Contrast;
  /** Features that the earlier one names of a token at most. */
  top: number;
}

/**
 * What a recipe's steps ask for on a model, in order. A feature that an earlier one picks is not known yet: see
 * {@link withPicked}.
 * @throws UserError where a step is about a form of the model that nobody named
 */
export function tasksOf(recipe: Recipe, model: RecipeModel): Array<LabTask | LiveTask | ContrastTask> {
  return recipe.steps.map((step) => {
    const { id, what, live, contrast } = step;
    if (live !== undefined) return { id, what, live: atLayers(live as LiveStep, model.layers?.[id]) };
    if (contrast !== undefined) {
      const read = recipe.steps.find((each) => each.id === contrast.step)?.request as { top?: number };
      return { id, what, contrast, top: read.top ?? defaults.feature_top };
    }
    return labTask(step, model);
  });
}

function labTask(step: RecipeStep, model: RecipeModel): LabTask {
  const { id, what, variant, request, keep } = step;
  const own = model.layers?.[id];
  const { operation, ...asked } = { ...request, ...(own === undefined ? {} : { layers: own }) };
  const formOf = (name: string) => {
    const form = model.variants?.[name];
    if (form !== undefined) return form;
    throw new UserError(`Step ${id} runs on ${name} of the model: name it with --variant ${name}=….`);
  };
  const { id: file, revision } = variant === undefined ? model : formOf(variant);
  const settings = replaced(asked, "variant", (name) => formOf(name).id) as { layers?: number[] };
  const [other] = variantsOf({ ...step, variant: undefined }).map(formOf);
  const kind = keptKinds[operation as string];
  return {
    ...{ id, what, model: file, operation: operation as Operation },
    settings: {
      ...settings,
      ...(revision !== undefined && { revision }),
      ...(other?.revision !== undefined && { other_revision: other.revision }),
    },
    ...(keep !== undefined && {
      keep: { name: keep, kind: kind as "dictionary" | "probe", layer: settings.layers?.[0] as number },
    }),
  };
}

/** A request with the features that earlier steps picked. */
export function withPicked(settings: Record<string, unknown>, results: Results): Record<string, unknown> {
  return replaced(settings, "picked", (step) => pickedBy(step, results)) as Record<string, unknown>;
}

/** The feature that a step picked. */
export function pickedBy(step: string, results: Results): number {
  return (results.get(step) as { feature: number }).feature;
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
