import type { ServingModel } from "../client/index.js";
import type { Budget, CheckResult } from "../contracts/budget.js";
import { budgetLimits } from "../contracts/budget-limits.js";
import { UserError } from "../contracts/user-error.js";
import { readingAlarms, tokenAlarms } from "./alarms.js";
import type { BudgetItems, ChangedItem } from "./items.js";
import type { CheckOptions } from "./make.js";
import { type Measurement, measure } from "./measure.js";
import { checkShape, modelOf, named, tokensOf } from "./model.js";
import { deviations, floatsIn } from "./readings.js";

export interface CheckRequest {
  budget: Budget;
  model: string;
  /** Compared with instead of the budget's reference. */
  against?: string | undefined;
  /** The budget's items as they are now. */
  current: { items: BudgetItems; changed: readonly ChangedItem[] };
}

interface Side {
  model: Budget["model"];
  /** Of each prompt. */
  tokens: readonly (readonly number[])[];
  measurements: readonly Measurement[];
}

/**
 * Measures a model and compares it with a budget's reference, or with another model.
 * @throws UserError if the models' blocks cannot be compared
 */
export async function checkBudget(request: CheckRequest, options: CheckOptions): Promise<CheckResult> {
  const { budget, current, against } = request;
  const { withModel, onProgress } = options;
  const budgets: Side = {
    model: budget.model,
    tokens: budget.prompts.map(({ tokens }) => tokens),
    measurements: budget.reference.map(({ profile, values }) => ({ profile, values: floatsIn(values) })),
  };
  const { signal } = options;
  onProgress?.(against ?? budget.model.id, 0);
  const reference =
    against === undefined
      ? budgets
      : await withModel(against, (serving) => sideOf(serving, budget, budget, undefined, options));
  onProgress?.(request.model, 0.5);
  return withModel(request.model, async (serving) => {
    // Both run the reference's tokens, so that a different tokenizer does not look like different weights.
    const side = await sideOf(serving, budget, current.items, reference.tokens, options);
    const units = budget.readings.map(({ unit }) => unit);
    const compared = reference.measurements.map(({ profile, values }, index) => ({
      profile,
      deviations: deviations(
        budget.readings,
        units,
        values,
        (side.measurements[index] as Measurement).values,
      ),
    }));
    const texts = (token: number) => serving.detokenize([token], { signal });
    const alarms = [
      ...(await tokenAlarms(reference.tokens, side.tokens, texts)),
      ...(await readingAlarms(budget.readings, reference.tokens, compared, texts)),
    ];
    return {
      passed: alarms.length === 0,
      ...{ model: named(side.model), against: named(reference.model), changed: [...current.changed] },
      checks: compared.reduce((sum, { deviations: all }) => sum + all.length, 0),
      greatest: Math.max(...compared.map(({ deviations: all }) => greatestShare(all, budget.readings))),
      alarms,
    };
  });
}

/** Measures a model on tokens, by default its own of the budget's prompts. */
async function sideOf(
  serving: ServingModel,
  budget: Budget,
  items: BudgetItems,
  run: readonly (readonly number[])[] | undefined,
  options: CheckOptions,
): Promise<Side> {
  const model = await modelOf(serving, options.signal);
  checkShape(model, budget.model);
  const tokens: number[][] = [];
  for (const prompt of budget.prompts) {
    const own = (await tokensOf(serving, prompt, options.signal)).slice(0, budgetLimits.prompt_tokens);
    if (own.length === 0 && run === undefined) {
      throw new UserError(`${model.id} cannot format the budget's chats.`);
    }
    tokens.push(own);
  }
  const prompts = (run ?? tokens).map((ids) => ({ tokens: [...ids] }));
  const measured = { items, prompts, model, seed: budget.seed };
  return { model, tokens, measurements: await measure(serving, measured, options) };
}

/** The greatest deviation as a multiple of its threshold. */
function greatestShare(all: Float64Array, readings: Budget["readings"]): number {
  return all.reduce((most, value, at) => {
    const { threshold } = readings[at % readings.length] as Budget["readings"][number];
    return Math.max(most, Math.min(value / threshold, Number.MAX_VALUE));
  }, 0);
}
