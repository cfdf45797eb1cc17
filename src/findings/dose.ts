import type { CompareResult } from "../contracts/index.js";
import { mean, meanOfKnown } from "./numbers.js";

export type Trial = CompareResult["trials"][number];

/** One prompt's trials, one per strength. */
export interface PromptTrials {
  prompt: string;
  trials: Trial[];
}

/** A point of a dose-response curve. */
export interface Dose {
  strength: number;
  probability: number;
}

/** The trials prompt by prompt, in the order of the request. */
export function byPrompt(trials: readonly Trial[]): PromptTrials[] {
  const groups = new Map<string, Trial[]>();
  for (const trial of trials) {
    const group = groups.get(trial.prompt);
    if (group === undefined) groups.set(trial.prompt, [trial]);
    else if (!group.some(({ strength }) => strength === trial.strength)) group.push(trial);
  }
  return [...groups].map(([prompt, own]) => ({ prompt, trials: own }));
}

/** The strengths, ascending. */
export function strengthsOf(prompts: readonly PromptTrials[]): number[] {
  const tried = prompts.flatMap(({ trials }) => trials.map(({ strength }) => strength));
  return [...new Set(tried)].sort((a, b) => a - b);
}

/** One prompt's trials as a curve. */
export function promptCurve({ trials }: PromptTrials): Trial[] {
  return trials.toSorted((a, b) => a.strength - b.strength);
}

/** The mean probability of the target tokens over the prompts. */
export function meanAt(prompts: readonly PromptTrials[], strength: number): number {
  return mean(trialsAt(prompts, strength).map(({ probability }) => probability));
}

/** The mean effect of a norm-matched random vector over the prompts; empty without this control. */
export function controlCurve(prompts: readonly PromptTrials[]): Dose[] {
  return strengthsOf(prompts).flatMap((strength) => {
    const probability = meanOfKnown(trialsAt(prompts, strength).map(({ control }) => control?.probability));
    return probability === undefined ? [] : [{ strength, probability }];
  });
}

/** The norm of the change relative to the activation norm. */
export function changeShare({ length, row_length }: NonNullable<Trial["change"]>): number {
  return row_length > 0 ? length / row_length : 0;
}

function trialsAt(prompts: readonly PromptTrials[], at: number): Trial[] {
  return prompts.flatMap(({ trials }) => trials.filter(({ strength }) => strength === at));
}
