import { checkInteger, tokenIds } from "../check.js";
import type { LensReading, Passes, TranslatorPlaces } from "./experiment.js";

export interface LensRequest {
  /** float32 [rows, hidden] per place; without a translator, this is the logit lens. */
  places: ReadonlyArray<{ states: Float32Array; translator?: TranslatorPlaces }>;
  /** The last block's rows, for divergences. */
  output?: Float32Array;
  top: number;
  /** One token id per row, whose rank is returned; negative: none. */
  targets?: Int32Array;
  /** Return entropies. */
  entropy?: boolean;
  signal?: AbortSignal;
}

/**
 * Applies the final norm and the output head to rows of a block output.
 * @param rows float32 [rows, hidden]
 * @returns logits, [rows, vocabulary]
 * @throws NativeError UNSUPPORTED_ARCHITECTURE without a logit lens
 */
export function lensLogits(passes: Passes, rows: Float32Array): Promise<Float32Array> {
  return passes.run("lensLogits", { rows });
}

/**
 * Reads rows of several places through a lens. The head is computed for all places together.
 * @returns one reading per place
 * @throws NativeError UNSUPPORTED_ARCHITECTURE without a logit lens
 */
export async function readLens(passes: Passes, request: LensRequest): Promise<LensReading[]> {
  const { signal, ...rest } = request;
  checkInteger("top", request.top ?? null, 1);
  if (request.targets !== undefined) tokenIds(request.targets);
  return passes.run("readLens", rest, signal);
}

export interface LogitDirection {
  /** [hidden]. */
  direction: Float64Array;
  constant: number;
}

/**
 * A token's logit as a linear function of the last block's output, with the final norm's scale fixed at `state`:
 * logit = direction . state + constant. In float64, from dequantised weights, without the rounding of products.
 * @param state float32 [hidden]
 * @throws NativeError UNSUPPORTED_ARCHITECTURE if the path to the logits is not linear then
 */
export async function logitDirection(
  passes: Passes,
  state: Float32Array,
  token: number,
): Promise<LogitDirection> {
  checkInteger("token", token ?? null, 0);
  return passes.run("logitDirection", { state, token });
}
