import { UserError } from "../contracts/index.js";
import type { Recipe } from "../contracts/recipe.js";
import { replaced, replacedPairs } from "./placeholders.js";

/** Lists of texts by name. */
export type Texts = Readonly<Record<string, readonly string[]>>;

/** A request with lists for `{"texts": NAME}`, and examples of two splits for `{"train": NAME, "test": NAME}`. */
function filled(value: unknown, listOf: (name: string) => readonly string[]): unknown {
  const withExamples = replacedPairs(value, ["train", "test"], (splits) =>
    Object.entries(splits).flatMap(([split, name]) => listOf(name).map((text) => ({ text, split }))),
  );
  return replaced(withExamples, "texts", listOf);
}

/**
 * The recipe with its text lists inserted where its requests refer to them as `{"texts": NAME}`. Lists that replace the
 * recipe's own are mentioned in `differs`.
 * @throws UserError for an unknown name
 */
export function withTexts(recipe: Recipe, given: Texts): Recipe {
  const own: Texts = recipe.texts ?? {};
  const unknown = Object.keys(given).find((name) => !(name in own));
  if (unknown !== undefined) {
    const known = Object.keys(own).join(", ") || "none";
    throw new UserError(`The recipe has no texts ${unknown}; it has ${known}.`);
  }
  const texts = { ...own, ...given };
  const listOf = (name: string) => {
    if (!(name in texts)) throw new UserError(`the recipe has no texts ${name}.`);
    return texts[name] as readonly string[];
  };
  const steps = recipe.steps.map((step) => {
    try {
      return {
        ...step,
        ...(filled({ request: step.request, live: step.live, quants: step.quants }, listOf) as object),
      };
    } catch (error) {
      throw new UserError(`Step ${step.id}: ${(error as Error).message}`);
    }
  });
  const others = Object.entries(given).map(([name, list]) => `${name} (${list.length})`);
  const differs = others.length === 0 ? "" : ` Texts replaced for this run: ${others.join(", ")}.`;
  return { ...recipe, differs: recipe.differs + differs, steps };
}
