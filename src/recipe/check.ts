import { UserError, validate } from "../contracts/index.js";
import {
  type Expected,
  type Quantity,
  type Reading,
  Recipe,
  type RecipeModel,
  type RecipeStep,
} from "../contracts/recipe.js";
import { reversedBounds } from "../contracts/reversed-range.js";
import { type Before, checkStep, variantsOf } from "./steps.js";
import { type Texts, withTexts } from "./texts.js";

/**
 * Checks everything about a recipe that can be checked before it runs.
 * @param texts lists that replace the recipe's own texts, by name
 * @returns the recipe with text lists inserted where its requests refer to them
 * @throws InvalidInput, UserError
 */
export function checkRecipe(value: unknown, texts: Texts = {}): Recipe {
  const recipe = withTexts(validate(Recipe, value), texts);
  const steps = recipe.steps.map(({ id }) => id);
  const ids = recipe.expected.map(({ id }) => id);
  for (const [what, names] of [
    ["steps", steps],
    ["expected values", ids],
  ] as const) {
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) throw new UserError(`Two of the recipe's ${what} are called ${twice}.`);
  }
  checkDictionaries(recipe.dictionaries ?? {});
  const given = Object.keys(recipe.dictionaries ?? {}).map((name) => [name, "dictionary"] as const);
  const before: Before = { live: new Map(), kept: new Map(given), steps: new Map() };
  for (const step of recipe.steps) {
    try {
      checkStep(step, before);
      before.steps.set(step.id, step);
    } catch (error) {
      throw new UserError(`Step ${step.id}: ${(error as Error).message}`);
    }
  }
  for (const expected of recipe.expected) checkExpected(expected, steps);
  for (const model of recipe.models) checkModel(model, recipe.steps, ids);
  return recipe;
}

function checkDictionaries(dictionaries: NonNullable<Recipe["dictionaries"]>): void {
  for (const [name, { from, random }] of Object.entries(dictionaries)) {
    if (random === undefined) continue;
    if (from !== undefined) throw new UserError(`${name} has both from and random.`);
    const like = dictionaries[random.like];
    if (like === undefined || like.random !== undefined) {
      throw new UserError(`${name} is like ${random.like}, which is not a dictionary with a place.`);
    }
  }
}

function checkExpected({ id, value, low, high }: Expected, steps: readonly string[]): void {
  if (low === undefined && high === undefined) {
    throw new UserError(`${id} needs low or high: without either it cannot fail.`);
  }
  if (reversedBounds(low, high)) {
    throw new UserError(`${id}: low must not exceed high, got ${low} and ${high}.`);
  }
  const unknown = readingsOf(value).find(({ step }) => !steps.includes(step));
  if (unknown !== undefined)
    throw new UserError(`${id} reads step ${unknown.step}, which is not in the recipe.`);
}

function checkModel(
  { id, layers = {}, expected = {}, variants = {}, quantised = {} }: RecipeModel,
  steps: readonly RecipeStep[],
  ids: readonly string[],
) {
  for (const [name, own] of Object.entries(layers)) {
    const step = steps.find((each) => each.id === name);
    if (step === undefined) throw new UserError(`Model ${id} has layers for ${name}, which is not a step.`);
    const { live, keep, request } = step;
    const { layers: asked = [] } = (request ?? {}) as { layers?: unknown[] };
    if (keep !== undefined && own.length !== 1 && asked.length <= 1) {
      throw new UserError(
        `Model ${id} has ${own.length} layers for ${name}; a step with keep needs exactly one.`,
      );
    }
    if (keep !== undefined && own.length <= 1 && asked.length > 1) {
      throw new UserError(`Model ${id} has ${own.length} layers for ${name}, which saves a set of several.`);
    }
    if (live !== undefined && !("vector" in live || "probe" in live)) {
      throw new UserError(
        `Model ${id} has layers for ${name}, whose layers are those of its vectors and probes.`,
      );
    }
    if (live !== undefined && "probe" in live && own.length !== 1) {
      throw new UserError(`Model ${id} has ${own.length} layers for ${name}; a probe needs exactly one.`);
    }
  }
  const twice = Object.keys(quantised).find((name) => name in variants);
  if (twice !== undefined) {
    throw new UserError(`Model ${id} has the variant ${twice} in both variants and quantised.`);
  }
  for (const step of steps) {
    const unknown = variantsOf(step).find((form) => !(form in variants || form in quantised));
    if (unknown !== undefined) {
      throw new UserError(`Step ${step.id} runs on ${unknown}, which is not a variant of model ${id}.`);
    }
  }
  const figure = Object.keys(expected).find((name) => !ids.includes(name));
  if (figure !== undefined)
    throw new UserError(`Model ${id} has a range for ${figure}, which is not among the expected values.`);
}

export function readingsOf(value: Quantity): readonly Reading[] {
  if ("difference" in value) return value.difference.flatMap(readingsOf);
  if ("same" in value) return value.same;
  return "mean" in value ? value.mean : [value];
}
