import { UserError } from "../../contracts/user-error.js";
import { encodeRows, strongestFeatures } from "../../native/index.js";
import type { LiveLibrary } from "./library.js";
import type { RowCapture } from "./row-store.js";

/** Maximum features per activation. */
export const mostFeatures = 100;

/**
 * The active features of a dictionary in captured activations, strongest first; none for activations that the layer
 * did not compute.
 * @throws UserError if the dictionary does not exist, does not fit the model, or reads a layer that was not captured
 */
export async function captureFeatures(
  { rows, tokens, promptTokens, layers, point = "block_out", heads }: RowCapture,
  { dictionaries, model }: LiveLibrary,
  name: string,
  top: number,
  signal: AbortSignal,
) {
  const { stored, places } = await dictionaries.fitting(name, model);
  if (stored.point !== point || heads !== undefined) {
    const captured = heads === undefined ? point : `heads of ${point}`;
    throw new UserError(`The dictionary ${name} reads ${stored.point}; the capture has ${captured}.`);
  }
  const found = layers.find(({ layer }) => layer === stored.layer);
  if (found === undefined) {
    const kept = layers.map(({ layer }) => layer).join(", ");
    throw new UserError(`The dictionary ${name} reads block ${stored.layer}; the capture has ${kept}.`);
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
        // The last block skips the prompt's earlier tokens, so their features are unknown.
        active:
          at === undefined ? null : (sparse.pointers[at + 1] as number) - (sparse.pointers[at] as number),
        features: at === undefined ? [] : strongestFeatures(sparse, at, top),
      };
    }),
  };
}
