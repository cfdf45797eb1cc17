import { UserError } from "../../contracts/user-error.js";
import { checkBlockOutput } from "../../library/index.js";
import { encodeRows, strongestFeatures } from "../../native/index.js";
import type { LiveLibrary } from "./library.js";
import type { RowCapture } from "./row-store.js";

/** Features that are told of a row at most. */
export const mostFeatures = 100;

/**
 * Which features of a dictionary are active in kept rows, the strongest of each row first; none in a row that its layer
 * did not compute.
 * @throws UserError where the dictionary is not there, is another model's, or reads a layer that was not kept
 */
export async function captureFeatures(
  { rows, tokens, promptTokens, layers }: RowCapture,
  { dictionaries, model }: LiveLibrary,
  name: string,
  top: number,
  signal: AbortSignal,
) {
  const { stored, places } = await dictionaries.fitting(name, model);
  checkBlockOutput(`The dictionary ${name}`, stored.point, stored.layer);
  const found = layers.find(({ layer }) => layer === stored.layer);
  if (found === undefined) {
    const kept = layers.map(({ layer }) => layer).join(", ");
    throw new UserError(`The dictionary ${name} reads block ${stored.layer}; the capture holds ${kept}.`);
  }
  const width = model.nEmbd;
  const computed = Array.from(rows.keys()).filter((row) => !Number.isNaN(found.values[row * width]));
  const values = new Float32Array(computed.length * width);
  for (const [at, row] of computed.entries()) {
    values.set(found.values.subarray(row * width, (row + 1) * width), at * width);
  }
  const encoded = new Map(computed.map((row, at) => [row, at]));
  const sparse = await encodeRows(places, values, { signal });
  return {
    dictionary: name,
    layer: stored.layer,
    prompt_tokens: promptTokens,
    rows: Array.from(rows, (index, row) => {
      const at = encoded.get(row);
      return {
        index,
        token_id: tokens[row] as number,
        // The last block does not compute the prompt's earlier rows: nothing is known of their features.
        active:
          at === undefined ? null : (sparse.pointers[at + 1] as number) - (sparse.pointers[at] as number),
        features: at === undefined ? [] : strongestFeatures(sparse, at, top),
      };
    }),
  };
}
