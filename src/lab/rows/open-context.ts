import { UserError } from "../../contracts/user-error.js";
import type { Context, ContextOptions, Model, Point } from "../../native/index.js";

/** A context for experiments on a model whose block outputs are known. @throws UserError where they are not */
export async function openContext(model: Model, options: ContextOptions): Promise<Context> {
  const context = await model.createContext(options);
  if (context.blockOutputs.supported) return context;
  await context.close();
  throw new UserError(context.blockOutputs.reason);
}

/** @throws UserError with the reason where a model's blocks have one of the points not */
export function checkPoints({ points }: Context, wanted: readonly Point[]): void {
  const missing = wanted.map((point) => points[point]).find(({ supported }) => !supported);
  if (missing !== undefined) throw new UserError(missing.reason);
}
