import { checkInteger } from "../check.js";
import type { Passes } from "./experiment.js";

export interface LogitDirection {
  /** [hidden]. */
  direction: Float64Array;
  constant: number;
}

/**
 * How a token's logit depends on the last block's output, with the final norm's scale kept as it is for that state:
 * logit = direction . state + constant. In float64, from the weights as they are, without any product's rounding.
 * @param state float32 [hidden]
 * @throws NativeError UNSUPPORTED_ARCHITECTURE where the way from there to the logits is not linear then
 */
export async function logitDirection(
  passes: Passes,
  state: Float32Array,
  token: number,
): Promise<LogitDirection> {
  checkInteger("token", token ?? null, 0);
  return passes.run("logitDirection", { state, token });
}
