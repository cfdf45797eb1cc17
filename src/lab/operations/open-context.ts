import { UserError } from "../../contracts/user-error.js";
import type { Context, ContextOptions, Model } from "../../native/index.js";

/**
 * Below this many parameters, threads cost more in waiting for each other than they bring: on the embedded model
 * (1.5M) one thread takes 0.6 ms for a short prompt and two take 2.5 ms, and on a busy machine much more.
 */
const singleThreadedParams = 20_000_000;

/** A context for experiments on a model whose block outputs are known. @throws UserError where they are not */
export async function openContext(model: Model, options: ContextOptions): Promise<Context> {
  const threads = model.info.nParams < singleThreadedParams ? { threads: 1 } : {};
  const context = await model.createContext({ ...options, ...threads });
  if (context.blockOutputs.supported) return context;
  await context.close();
  throw new UserError(context.blockOutputs.reason);
}
