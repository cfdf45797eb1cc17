import { UserError } from "../../contracts/user-error.js";
import { threadsFor } from "../../models/threads.js";
import type { Context, ContextOptions, Model } from "../../native/index.js";

/** A context for experiments on a model whose block outputs are known. @throws UserError where they are not */
export async function openContext(model: Model, options: ContextOptions): Promise<Context> {
  const context = await model.createContext({ threads: threadsFor(model.info.bytes), ...options });
  if (context.blockOutputs.supported) return context;
  await context.close();
  throw new UserError(context.blockOutputs.reason);
}
