import { checkInteger, tokenIds } from "../check.js";
import { type Edit, type EditEffect, nativeEdits } from "../edit.js";
import type { Passes } from "./experiment.js";

/**
 * One prompt under one plan of edits: target probability after the prompt, and a greedy continuation. If `finite` is
 * false, a logit was NaN or infinite and the row ended there: its numbers are meaningless. `effects` has one entry per
 * edit, over all of the row's tokens; none in a baseline.
 */
export interface SweepRow {
  probability: number;
  continuation: Int32Array;
  finite: boolean;
  effects: EditEffect[];
}

/** One prompt's target token, its baseline, and one row per plan. */
export interface SweepTrial {
  target: number;
  baseline: SweepRow;
  rows: SweepRow[];
}

export interface SweepRequest {
  /** Token ids of each prompt. */
  prompts: readonly Int32Array[];
  /** Plans of edits for every prompt; the edits of a plan are applied in order. */
  plans: ReadonlyArray<readonly Edit[]>;
  /** One token id per prompt; -1 means the baseline's most probable token. Default: -1. */
  targets?: Int32Array;
  /** Greedy continuation, 0 for none. Ends before an end-of-generation token. */
  maxTokens: number;
  signal?: AbortSignal;
  onProgress?: (done: number, total: number) => void;
}

/**
 * Compares every prompt's baseline with every plan of edits: prompts are computed once up to the first edited token, their
 * K/V is shared, and all rows are generated in lockstep, one batch per step. A plan of neutral edits (scale 1, strength 0)
 * is the baseline. The context needs `1 + plans` sequences, and {@link sweepCells} tokens per prompt; more of both lets
 * several prompts run together. Clears the context's sequence.
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
 * The most tokens of a sweep per prompt: the prompt, every row's continuation, and the prompt again for every plan that
 * edits rows before the prompt's last one.
 */
export function sweepCells(promptTokens: number, plans: SweepRequest["plans"], maxTokens: number): number {
  const recomputed = plans.filter((plan) =>
    plan.some(({ positions = "last" }) => positions !== "last"),
  ).length;
  return promptTokens * (1 + recomputed) + (1 + plans.length) * maxTokens;
}
