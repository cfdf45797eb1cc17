import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Recipe, RecipeModel } from "../contracts/recipe.js";
import { variantsOf } from "./steps.js";

/** Quantised variants of a recipe's model, created for its run. */
export interface MadeVariants {
  /** The model, with its variants as files. */
  model: RecipeModel;
  remove(): Promise<void>;
}

/**
 * Creates the quantised variants that a recipe's steps use, from the model's file, in a temporary folder. Variants that are
 * files or hub models already are used as they are.
 * @throws UserError, NativeError if the model is missing or has fewer than 16 bits
 */
export async function makeVariants(
  { steps }: Recipe,
  model: RecipeModel,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<MadeVariants> {
  const wanted = new Set(steps.flatMap(variantsOf));
  const { variants = {}, quantised = {}, id, revision } = model;
  // A file given for a variant replaces it.
  const toMake = Object.entries(quantised).filter(([name]) => wanted.has(name) && !(name in variants));
  if (toMake.length === 0) return { model, remove: async () => {} };
  const [{ resolveModel }, { quantise }] = await Promise.all([
    import("../models/resolve.js"),
    import("../native/index.js"),
  ]);
  const { path } = await resolveModel(id, { signal, ...(revision !== undefined && { revision }) });
  const folder = await mkdtemp(join(tmpdir(), "tapline-variants-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const made: NonNullable<RecipeModel["variants"]> = {};
    for (const [name, form] of toMake) {
      signal.throwIfAborted();
      onStage(`writing ${id} in ${form}`);
      const to = join(folder, `${basename(path, ".gguf")}-${form}.gguf`);
      await quantise({ from: path, to, form });
      made[name] = { id: to };
    }
    return { model: { ...model, variants: { ...variants, ...made } }, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
