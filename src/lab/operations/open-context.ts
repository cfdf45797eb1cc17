import type { Context, Model } from "../../native/index.js";

/**
 * Below this many parameters, threads cost more in waiting for each other than they bring: on the embedded model
 * (1.5M) one thread takes 0.6 ms for a short prompt and two take 2.5 ms, and on a busy machine much more.
 */
const singleThreadedParams = 20_000_000;

/** A context for one sequence of at most `nCtx` tokens. */
export function openContext(model: Model, nCtx: number): Promise<Context> {
  return model.createContext({ nCtx, ...(model.info.nParams < singleThreadedParams ? { threads: 1 } : {}) });
}
