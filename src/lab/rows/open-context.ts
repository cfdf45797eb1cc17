import type { Config } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import type { Context, ContextOptions, Model, Point } from "../../native/index.js";
import type { OperationInput } from "../../operations/run.js";

/** A context for experiments on a model whose block outputs are known. @throws UserError where they are not */
export async function openContext(model: Model, options: ContextOptions): Promise<Context> {
  const context = await model.createContext(options);
  if (context.blockOutputs.supported) return context;
  await context.close();
  throw new UserError(context.blockOutputs.reason);
}

/** What is done in a context, which is closed after it. @throws UserError where block outputs are not known */
export async function inContext<T>(
  { model, clock }: Pick<OperationInput<Config>, "model" | "clock">,
  options: ContextOptions,
  work: (context: Context) => Promise<T>,
): Promise<T> {
  const context = await clock.measure("context", () => openContext(model, options));
  try {
    return await work(context);
  } finally {
    await context.close();
  }
}

/** @throws UserError with the reason where a model's blocks have one of the points not */
export function checkPoints({ points }: Context, wanted: readonly Point[]): void {
  const missing = wanted.map((point) => points[point]).find(({ supported }) => !supported);
  if (missing !== undefined) throw new UserError(missing.reason);
}
