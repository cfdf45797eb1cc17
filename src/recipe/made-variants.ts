import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Recipe, RecipeModel } from "../contracts/recipe.js";
import { variantsOf } from "./steps.js";

/** Forms of a recipe's model that are made for its run. */
export interface MadeVariants {
  /** The model, its forms as files. */
  model: RecipeModel;
  remove(): Promise<void>;
}

/**
 * Makes the forms in fewer bits that a recipe's steps are about, from the model's own file, into a folder that lasts as
 * long as the run. What is a file or of the hub already stays as it is.
 * @throws UserError, NativeError where the model is not there, or has fewer than 16 bits itself
 */
export async function makeVariants(
  { steps }: Recipe,
  model: RecipeModel,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<MadeVariants> {
  const wanted = new Set(steps.flatMap(variantsOf));
  const { variants = {}, quantised = {}, id, revision } = model;
  // A file that somebody names for a form takes its place.
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
