import { checkInteger, tokenIds } from "../check.js";
import { type Edit, type EditEffect, nativeEdits } from "../edit.js";
import type { Passes } from "./experiment.js";

/**
 * What one prompt did under one plan of edits: target probability after the prompt, and a greedy continuation. Where
 * `finite` is false, a logit was NaN or infinite and the row ended there: its numbers mean nothing. `effects` has one
 * entry an edit, over all of the row's tokens; none in a baseline.
 */
export interface SweepRow {
  probability: number;
  continuation: Int32Array;
  finite: boolean;
  effects: EditEffect[];
}

/** One prompt's target token, its baseline, and one row a plan, in the order given. */
export interface SweepTrial {
  target: number;
  baseline: SweepRow;
  rows: SweepRow[];
}

export interface SweepRequest {
  /** Token ids of each prompt. */
  prompts: readonly Int32Array[];
  /** Plans of edits, each tried on every prompt; the edits of a plan are applied in order. */
  plans: ReadonlyArray<readonly Edit[]>;
  /** One token id a prompt; -1 takes the baseline's most probable token. Default: -1 everywhere. */
  targets?: Int32Array;
  /** Greedy continuation, 0 for none. Ends early at an end-of-generation token, which is left out. */
  maxTokens: number;
  signal?: AbortSignal;
  onProgress?: (done: number, total: number) => void;
}

/**
 * Compares every prompt's baseline with every plan of edits: prompts are computed once up to the first token that
 * is edited, their K/V is shared, and all rows are generated in lockstep as one batch a step. A plan of neutral
 * edits (scale 1, strength 0) is the baseline itself. The context needs `1 + plans` sequences, and {@link sweepCells}
 * tokens a prompt; more of both lets several prompts run at once. Forgets the context's sequence.
 */
export async function sweep(passes: Passes, request: SweepRequest): Promise<SweepTrial[]> {
  const { signal, ...rest } = request;
  checkInteger("maxTokens", request.maxTokens ?? null, 0);
  if (request.targets !== undefined) tokenIds(request.targets);
  const prompts = request.prompts.map(tokenIds);
  const plans = request.plans.map((plan) => nativeEdits(plan, passes.hidden));
  return passes.run("sweep", { ...rest, prompts, plans }, signal);
}

/**
 * The most tokens that a sweep holds for one prompt: the prompt, every row's continuation, and for every plan that
 * edits earlier rows than the prompt's last one the prompt once more.
 */
export function sweepCells(promptTokens: number, plans: SweepRequest["plans"], maxTokens: number): number {
  const recomputed = plans.filter((plan) =>
    plan.some(({ positions = "last" }) => positions !== "last"),
  ).length;
  return promptTokens * (1 + recomputed) + (1 + plans.length) * maxTokens;
}
