import type { Config } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import type { Context, ContextOptions, Model, Point } from "../../native/index.js";
import type { OperationInput } from "../../operations/run.js";

/** Opens a context for experiments. @throws UserError if the model's block outputs are unknown */
export async function openContext(model: Model, options: ContextOptions): Promise<Context> {
  const context = await model.createContext(options);
  if (context.blockOutputs.supported) return context;
  await context.close();
  throw new UserError(context.blockOutputs.reason);
}

/** Works in a context and closes it. @throws UserError if the model's block outputs are unknown */
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

/** @throws UserError with the reason if the model's blocks lack a point */
export function checkPoints({ points }: Context, wanted: readonly Point[]): void {
  const missing = wanted.map((point) => points[point]).find(({ supported }) => !supported);
  if (missing !== undefined) throw new UserError(missing.reason);
}
