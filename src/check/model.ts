import { type ServingModel, TaplineError } from "../client/index.js";
import type { Budget, BudgetPrompt, CheckResult } from "../contracts/budget.js";
import { UserError } from "../contracts/user-error.js";

/** Serves a model by its file, id or address for as long as `use` runs. */
export type WithModel = <T>(model: string, use: (serving: ServingModel) => Promise<T>) => Promise<T>;

/** The served model's facts. */
export async function modelOf(
  serving: ServingModel,
  signal: AbortSignal | undefined,
): Promise<Budget["model"]> {
  const [{ model, fingerprint = "", architecture, n_layer, n_embd }, { quantization }] = await Promise.all([
    serving.capabilities({ signal }),
    serving.meta({ signal }),
  ]);
  if (model === null || n_layer === null || n_embd === null) {
    throw new TaplineError("The server has no model loaded at the moment.");
  }
  return { id: model, fingerprint, architecture: architecture ?? "", quantization, n_layer, n_embd };
}

/** The facts that a result reports. */
export function named({
  id,
  fingerprint,
  architecture,
  quantization,
}: Budget["model"]): CheckResult["model"] {
  return { id, fingerprint, architecture, quantization };
}

/** @throws UserError if the two models' blocks cannot be compared */
export function checkShape(model: Budget["model"], reference: Budget["model"]): void {
  if (model.n_layer === reference.n_layer && model.n_embd === reference.n_embd) return;
  const shape = ({ n_layer, n_embd }: Budget["model"]) => `${n_layer} blocks of width ${n_embd}`;
  throw new UserError(
    `${model.id} has ${shape(model)}, and ${reference.id} has ${shape(reference)}: they cannot be compared.`,
  );
}

/** The tokens of a prompt on the served model; none if it cannot format chats. */
export async function tokensOf(
  serving: ServingModel,
  { text, chat }: Pick<BudgetPrompt, "text" | "chat">,
  signal: AbortSignal | undefined,
): Promise<number[]> {
  try {
    const whole =
      chat === undefined
        ? (text as string)
        : await serving.formatChat([{ role: "user", content: chat }], { signal });
    return await serving.tokenize(whole, { signal });
  } catch (error) {
    if (error instanceof TaplineError && error.status === 400) return [];
    throw error;
  }
}
