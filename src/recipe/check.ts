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
 * Everything about a recipe that can be known before it runs.
 * @param given lists in place of the recipe's own texts, by name
 * @returns the recipe with the lists where its requests name them
 * @throws InvalidInput, UserError
 */
export function checkRecipe(value: unknown, given: Texts = {}): Recipe {
  const recipe = withTexts(validate(Recipe, value), given);
  const steps = recipe.steps.map(({ id }) => id);
  const ids = recipe.expected.map(({ id }) => id);
  for (const [what, names] of [
    ["steps", steps],
    ["expected figures", ids],
  ] as const) {
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) throw new UserError(`Two of the recipe's ${what} are called ${twice}.`);
  }
  const before: Before = { live: new Map(), kept: new Map(), steps: new Map() };
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

function checkExpected({ id, value, low, high }: Expected, steps: readonly string[]): void {
  if (low === undefined && high === undefined) {
    throw new UserError(`${id} has neither low nor high, so it could not fail.`);
  }
  if (reversedBounds(low, high)) {
    throw new UserError(`${id} expects at least ${low} and at most ${high}.`);
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
    if (step === undefined) throw new UserError(`Model ${id} has layers for ${name}, which is no step.`);
    const { live, keep } = step;
    if (keep !== undefined && own.length !== 1) {
      throw new UserError(`Model ${id} has ${own.length} layers for ${name}; what is kept has one.`);
    }
    if (live !== undefined && !("vector" in live || "probe" in live)) {
      throw new UserError(`Model ${id} has layers for ${name}, which acts where its vectors and probes do.`);
    }
    if (live !== undefined && "probe" in live && own.length !== 1) {
      throw new UserError(`Model ${id} has ${own.length} layers for ${name}; a probe has one.`);
    }
  }
  const twice = Object.keys(quantised).find((name) => name in variants);
  if (twice !== undefined) {
    throw new UserError(`Model ${id} has the form ${twice} in variants and in quantised.`);
  }
  for (const step of steps) {
    const unknown = variantsOf(step).find((form) => !(form in variants || form in quantised));
    if (unknown !== undefined) {
      throw new UserError(`Step ${step.id} runs on ${unknown}, which is no variant of model ${id}.`);
    }
  }
  const figure = Object.keys(expected).find((name) => !ids.includes(name));
  if (figure !== undefined)
    throw new UserError(`Model ${id} has a range for ${figure}, which is not expected.`);
}

export function readingsOf(value: Quantity): readonly Reading[] {
  if ("difference" in value) return value.difference.flatMap(readingsOf);
  if ("same" in value) return value.same;
  return "mean" in value ? value.mean : [value];
}
