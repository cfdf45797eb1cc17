import { checkSubmission, UserError, validate } from "../contracts/index.js";
import { type Expected, type Quantity, type Reading, Recipe, type RecipeModel } from "../contracts/recipe.js";

/** Everything about a recipe that can be known before it runs. @throws InvalidInput, UserError */
export function checkRecipe(value: unknown): Recipe {
  const recipe = validate(Recipe, value);
  const steps = recipe.steps.map(({ id }) => id);
  const ids = recipe.expected.map(({ id }) => id);
  for (const [what, names] of [
    ["steps", steps],
    ["expected figures", ids],
  ] as const) {
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) throw new UserError(`Two of the recipe's ${what} are called ${twice}.`);
  }
  for (const { id, request } of recipe.steps) {
    if ("model" in request || "revision" in request) {
      throw new UserError(`Step ${id} names a model; a recipe names it in models, for all steps.`);
    }
    try {
      checkSubmission({ model: "demo", ...request });
    } catch (error) {
      throw new UserError(`Step ${id}: ${(error as Error).message}`);
    }
  }
  for (const expected of recipe.expected) checkExpected(expected, steps);
  for (const model of recipe.models) checkModel(model, steps, ids);
  return recipe;
}

function checkExpected({ id, value, low, high }: Expected, steps: readonly string[]): void {
  if (low === undefined && high === undefined) {
    throw new UserError(`${id} has neither low nor high, so it could not fail.`);
  }
  if (low !== undefined && high !== undefined && low > high) {
    throw new UserError(`${id} expects at least ${low} and at most ${high}.`);
  }
  const unknown = readingsOf(value).find(({ step }) => !steps.includes(step));
  if (unknown !== undefined)
    throw new UserError(`${id} reads step ${unknown.step}, which is not in the recipe.`);
}

function checkModel(
  { id, layers = {}, expected = {} }: RecipeModel,
  steps: readonly string[],
  ids: readonly string[],
) {
  const step = Object.keys(layers).find((name) => !steps.includes(name));
  if (step !== undefined) throw new UserError(`Model ${id} has layers for ${step}, which is no step.`);
  const figure = Object.keys(expected).find((name) => !ids.includes(name));
  if (figure !== undefined)
    throw new UserError(`Model ${id} has a range for ${figure}, which is not expected.`);
}

export function readingsOf(value: Quantity): readonly Reading[] {
  if ("difference" in value) return value.difference;
  return "mean" in value ? value.mean : [value];
}
