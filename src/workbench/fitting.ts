import type { Capabilities } from "../contracts/index.js";

/** What a stored thing says of the model that it was made for; files of other projects say widths alone. */
interface Stored {
  name: string;
  n_embd: number;
  model?: { id: string; fingerprint: string } | null;
  layer?: number;
  model_layers?: number | null;
}

type Served = Pick<Capabilities, "n_embd" | "n_layer"> & Partial<Pick<Capabilities, "fingerprint">>;

/**
 * Those that fit the served model: of its width, of a block that it has and, where it is known, of this model. Others would be
 * refused by every request that names them, so that a page does not offer them.
 */
export function fitting<T extends Stored>(stored: readonly T[], served: Served): T[] {
  return stored.filter((one) => misfit(one, served) === undefined);
}

/** Why a stored thing does not fit the served model, as a sentence; undefined where it fits. */
export function misfit(
  { name, n_embd, model, layer = 0, model_layers }: Stored,
  served: Served,
): string | undefined {
  const { n_embd: width, n_layer: blocks, fingerprint } = served;
  if (width !== null && n_embd !== width) {
    return `${name} is for another model: it reads rows of ${n_embd} values; the served model's have ${width}.`;
  }
  if (blocks !== null && layer >= blocks) {
    return `${name} is for another model: it reads block ${layer}; the served model has blocks 0 to ${blocks - 1}.`;
  }
  if (blocks !== null && (model_layers ?? blocks) !== blocks) {
    return `${name} is for another model: one with ${model_layers} blocks; the served model has ${blocks}.`;
  }
  if (typeof fingerprint === "string" && (model?.fingerprint ?? fingerprint) !== fingerprint) {
    return `${name} is for another model: ${model?.id || "one with another fingerprint"}.`;
  }
  return undefined;
}
