import type { Capabilities } from "../contracts/index.js";

/** What a stored thing says of the model that it was made for; files of other projects say widths alone. */
interface Stored {
  n_embd: number;
  model?: { fingerprint: string } | null;
  layer?: number;
  model_layers?: number | null;
}

/**
 * Those that fit the served model: of its width, of a block that it has and, where it is known, of this model. Others would be
 * refused by every request that names them, so that a page does not offer them.
 */
export function fitting<T extends Stored>(
  stored: readonly T[],
  { n_embd, n_layer, fingerprint }: Pick<Capabilities, "n_embd" | "n_layer" | "fingerprint">,
): T[] {
  return stored.filter(
    (one) =>
      (n_embd === null || one.n_embd === n_embd) &&
      (n_layer === null || ((one.layer ?? 0) < n_layer && (one.model_layers ?? n_layer) === n_layer)) &&
      (typeof fingerprint !== "string" || (one.model?.fingerprint ?? fingerprint) === fingerprint),
  );
}
