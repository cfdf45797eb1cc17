import type { Budget, BudgetPrompt } from "../contracts/budget.js";
import { budgetLimits } from "../contracts/budget-limits.js";
import { UserError } from "../contracts/user-error.js";
import { version } from "../contracts/version.js";
import { shuffle, uniformNumbers } from "../findings/random.js";
import { bytesOf } from "../formats/float.js";
import type { BudgetItems, SavedItems } from "./items.js";
import { type Measured, type Measurement, measure } from "./measure.js";
import { checkShape, modelOf, named, tokensOf, type WithModel } from "./model.js";
import { deviations, greatest, type Reading, readingsOf, unitsOf } from "./readings.js";
import { repeatsFor, thresholdsOf } from "./thresholds.js";

export interface MakeRequest {
  model: string;
  /** Other forms of the model that must pass, such as a quantized one. */
  accept: readonly string[];
  prompts: readonly Pick<BudgetPrompt, "text" | "chat">[];
  items: BudgetItems;
  falseAlarms: number;
  seed: number;
}

export interface CheckOptions {
  withModel: WithModel;
  saved: Pick<SavedItems, "dictionaries">;
  signal?: AbortSignal | undefined;
  onProgress?: (what: string, share: number) => void;
}

/**
 * Measures a model and writes its budget: its readings, and thresholds from clean repeats in other batches and from accepted
 * forms.
 * @throws UserError if a form has another shape or other tokens
 */
export async function makeBudget(request: MakeRequest, options: CheckOptions): Promise<Budget> {
  const { withModel, onProgress, signal } = options;
  const { falseAlarms, items, seed } = request;
  const own = await withModel(request.model, async (serving) => {
    const model = await modelOf(serving, signal);
    checkLayers(items, model);
    const prompts: BudgetPrompt[] = [];
    for (const prompt of request.prompts) {
      const tokens = (await tokensOf(serving, prompt, signal)).slice(0, budgetLimits.prompt_tokens);
      if (tokens.length > 0) prompts.push({ ...prompt, tokens });
    }
    if (prompts.length === 0) throw new UserError("The model formats none of the prompts.");
    const measured: Measured = { items, prompts, model, seed };
    onProgress?.("reference", 0);
    const reference = await measure(serving, measured, { ...options });
    const readings = readingsOf(items, model.n_layer);
    const references = reference.map(({ values }) => values);
    const units = unitsOf(readings, items, references);
    const compare = comparison(readings, units, reference);
    const clean: number[][] = [];
    const count = budgetLimits.scale_repeats + repeatsFor(falseAlarms);
    const uniform = uniformNumbers(seed + 1);
    while (clean.length < count) {
      onProgress?.(`clean repeat ${clean.length + 1} of ${count}`, clean.length / count);
      const batches = randomBatches(prompts.length, uniform);
      clean.push(compare(await measure(serving, measured, { ...options, batches })));
    }
    return {
      model,
      prompts,
      measured,
      reference,
      readings,
      compare,
      clean,
      units,
    };
  });
  const { model, prompts, measured, reference, readings, clean, units } = own;
  const accepted: Budget["accepted"] = [];
  const forms: number[][] = [];
  for (const form of request.accept) {
    onProgress?.(form, 1);
    await withModel(form, async (serving) => {
      const other = await modelOf(serving, signal);
      checkShape(other, model);
      for (const prompt of prompts) {
        const tokens = (await tokensOf(serving, prompt, signal)).slice(0, budgetLimits.prompt_tokens);
        if (tokens.join() !== prompt.tokens.join()) {
          throw new UserError(
            `${other.id} tokenizes ${JSON.stringify(prompt.text ?? prompt.chat)} differently from ${model.id}: it is not another form of it.`,
          );
        }
      }
      forms.push(own.compare(await measure(serving, measured, { ...options })));
      accepted.push(named(other));
    });
  }
  const thresholds = thresholdsOf(readings, {
    ...{
      scale: clean.slice(0, budgetLimits.scale_repeats),
      repeats: clean.slice(budgetLimits.scale_repeats),
    },
    ...{ accepted: forms, falseAlarms },
  });
  return {
    ...{ kind: "tapline budget", schema_version: 1, tapline: version, created: Date.now() / 1000, model },
    ...{ false_alarms: falseAlarms, repeats: clean.length, accepted, seed, prompts, ...items },
    readings: readings.map((reading, index) => ({
      ...reading,
      unit: units[index] as number,
      noise: rounded((thresholds[index] as Threshold).noise),
      threshold: rounded((thresholds[index] as Threshold).threshold),
    })),
    reference: reference.map(({ profile, values }) => ({
      profile,
      values: Buffer.from(bytesOf(values)).toString("base64"),
    })),
  };
}

type Threshold = ReturnType<typeof thresholdsOf>[number];

/** The greatest deviation of each reading from the reference, over all profiles. */
function comparison(
  readings: readonly Reading[],
  units: readonly number[],
  reference: readonly Measurement[],
) {
  return (others: readonly Measurement[]): number[] => {
    const each = reference.map(({ values }, index) =>
      greatest(deviations(readings, units, values, (others[index] as Measurement).values), readings.length),
    );
    return readings.map((_, reading) => Math.max(...each.map((maxima) => maxima[reading] as number)));
  };
}

/** The prompts in random order, in batches of random size. */
function randomBatches(count: number, uniform: () => number): number[][] {
  const order = shuffle([...Array(count).keys()], uniform);
  const batches: number[][] = [];
  while (order.length > 0) batches.push(order.splice(0, 1 + Math.floor(8 * uniform())));
  return batches;
}

/** @throws UserError if an item reads a block that the model does not have */
function checkLayers(
  { probes, vectors, features }: BudgetItems,
  { id, n_layer: blocks }: Budget["model"],
): void {
  const most = Math.max(-1, ...[...probes, ...vectors, ...features].map(({ layer }) => layer));
  if (most >= blocks)
    throw new UserError(`${id} has blocks 0 to ${blocks - 1}; an item reads block ${most}.`);
}

/** With four digits, upwards. */
function rounded(value: number): number {
  const step = 10 ** (Math.floor(Math.log10(value)) - 3);
  return Number((Math.ceil(value / step) * step).toPrecision(4));
}
