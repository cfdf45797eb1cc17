import { defaults, type Operation, UserError } from "../contracts/index.js";
import type {
  Contrast,
  Expected,
  Recipe,
  RecipeModel,
  RecipeQuants,
  RecipeStep,
} from "../contracts/recipe.js";
import { publicName } from "../text/words.js";
import type { LiveStep } from "./live.js";
import { measure, type Results } from "./measure.js";
import { replaced } from "./placeholders.js";
import { savedKinds, variantsOf } from "./steps.js";

/** An expected value and the measured one. */
export interface Outcome {
  expected: Expected;
  /** The expected range: the model's own, if it has one. */
  low: number | undefined;
  high: number | undefined;
  source: string;
  seen: number;
  held: boolean;
}

/**
 * The recipe's model of a name, or a model that the recipe does not list.
 * @param variants files that replace the recipe's variants, by name
 */
export function chooseModel(
  { models }: Recipe,
  named: string | undefined,
  variants: Readonly<Record<string, string>> = {},
): RecipeModel {
  const known = named === undefined ? models[0] : models.find(({ id }) => id === named);
  // Quantised variants can be made from any model's file.
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

/** What a recipe ran on: the model, or the variants that its steps use. */
export function modelText({ steps }: Recipe, { id, variants = {}, quantised = {} }: RecipeModel): string {
  const named = (form: string) => {
    const own = variants[form]?.id;
    return `${form}: ${own === undefined ? `${publicName(id)} in ${quantised[form]}` : publicName(own)}`;
  };
  // A contrast only evaluates another step's reading.
  const about = steps.filter(({ contrast }) => contrast === undefined);
  const forms = about.flatMap((step) => [
    ...(step.variant === undefined ? [undefined] : []),
    ...variantsOf(step),
  ]);
  return [...new Set(forms)].map((form) => (form === undefined ? publicName(id) : named(form))).join(", ");
}

/** A step's experiment in a Lab. */
export interface LabTask {
  id: string;
  what: string;
  /** The model, or the variant that the step uses. */
  model: string;
  operation: Operation;
  settings: Record<string, unknown>;
  /** Name and kind under which trained items are saved; see {@link keptNames}. */
  keep?: { name: string; kind: "dictionary" | "probe"; layers: readonly number[] };
}

/** A step's request to a serving model. */
export interface LiveTask {
  id: string;
  what: string;
  live: LiveStep;
}

/** A step's evaluation of an earlier step's result. */
export interface ContrastTask {
  id: string;
  what: string;
  contrast: Contrast;
  /** Maximum number of features per token in the earlier result. */
  top: number;
}

/** A step's measurement of the model's forms. */
export interface QuantsTask {
  id: string;
  what: string;
  model: string;
  revision: string | undefined;
  quants: RecipeQuants;
}

/**
 * The tasks of a recipe's steps on a model, in order. Features picked by earlier steps are not known yet: see
 * {@link withPicked}.
 * @throws UserError if a step uses a variant without a file
 */
export function tasksOf(
  recipe: Recipe,
  model: RecipeModel,
): Array<LabTask | LiveTask | ContrastTask | QuantsTask> {
  return recipe.steps.map((step) => {
    const { id, what, live, contrast, quants } = step;
    if (quants !== undefined) {
      const layers = model.layers?.[id] ?? quants.layers;
      return { id, what, model: model.id, revision: model.revision, quants: { ...quants, layers } };
    }
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
    throw new UserError(`Step ${id} needs the variant ${name} of the model: use --variant ${name}=….`);
  };
  const { id: file, revision } = variant === undefined ? model : formOf(variant);
  const settings = replaced(asked, "variant", (name) => formOf(name).id) as { layers?: number[] };
  const [other] = variantsOf({ ...step, variant: undefined }).map(formOf);
  const kind = savedKinds[operation as string];
  return {
    ...{ id, what, model: file, operation: operation as Operation },
    settings: {
      ...settings,
      ...(revision !== undefined && { revision }),
      ...(other?.revision !== undefined && { other_revision: other.revision }),
    },
    ...(keep !== undefined && {
      keep: { name: keep, kind: kind as "dictionary" | "probe", layers: settings.layers as number[] },
    }),
  };
}

/** A request with the features picked by earlier steps filled in. */
export function withPicked(settings: Record<string, unknown>, results: Results): Record<string, unknown> {
  return replaced(settings, "picked", (step) => pickedBy(step, results)) as Record<string, unknown>;
}

/** The feature picked by a step. */
export function pickedBy(step: string, results: Results): number {
  return (results.get(step) as { feature: number }).feature;
}

function atLayers(live: LiveStep, layers: number[] | undefined): LiveStep {
  if (layers === undefined) return live;
  if ("vector" in live) return { vector: { ...live.vector, layers } };
  return "probe" in live ? { probe: { ...live.probe, layer: layers[0] as number } } : live;
}

/** Compares every expected value with the results. @throws UserError */
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
