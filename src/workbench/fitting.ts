import type { Capabilities } from "../contracts/index.js";
import type { StoredProfile } from "../contracts/profile.js";

/** The model that a saved artifact was made for; files of other projects only record the hidden size. */
interface Stored {
  name: string;
  n_embd: number;
  model?: { id: string; fingerprint: string } | null;
  layer?: number;
  model_layers?: number | null;
}

type Served = Pick<Capabilities, "n_embd" | "n_layer"> & Partial<Pick<Capabilities, "fingerprint">>;

/**
 * The artifacts that fit the served model: hidden size, layer and, if recorded, fingerprint. The page does not offer others,
 * because the server would reject them.
 */
export function fitting<T extends Stored>(stored: readonly T[], served: Served): T[] {
  return stored.filter((one) => misfit(one, served) === undefined);
}

/** Why a profile cannot run on the served model, as a sentence; undefined if it can. */
export function profileMisfit(
  { name, model, changed }: Pick<StoredProfile, "name" | "model" | "changed">,
  { fingerprint }: Pick<Served, "fingerprint">,
): string | undefined {
  if (model !== null && typeof fingerprint === "string" && model.fingerprint !== fingerprint) {
    return `${name} is for another model: ${model.id}.`;
  }
  return changed[0];
}

/** Why an artifact does not fit the served model, as a sentence; undefined if it fits. */
export function misfit(
  { name, n_embd, model, layer = 0, model_layers }: Stored,
  served: Served,
): string | undefined {
  const { n_embd: width, n_layer: blocks, fingerprint } = served;
  if (width !== null && n_embd !== width) {
    return `${name} is for another model: its hidden size is ${n_embd}, the served model's ${width}.`;
  }
  if (blocks !== null && layer >= blocks) {
    return `${name} is for another model: it reads layer ${layer}; the served model has layers 0 to ${blocks - 1}.`;
  }
  if (blocks !== null && (model_layers ?? blocks) !== blocks) {
    return `${name} is for another model: one with ${model_layers} layers; the served model has ${blocks}.`;
  }
  if (typeof fingerprint === "string" && (model?.fingerprint ?? fingerprint) !== fingerprint) {
    return `${name} is for another model: ${model?.id || "one with another fingerprint"}.`;
  }
  return undefined;
}
