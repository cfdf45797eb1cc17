import type { CompareConfig } from "../../contracts/index.js";
import type { Context, Edit, EditEffect, SweepTrial } from "../../native/index.js";
import { controlPlan, type Swap, swapChange, swapPlans } from "./run-swap.js";

/** Computes one prompt under several plans; `pass` numbers the calls from 0 to `passes` - 1. */
export type SweepOne = (
  prompt: Int32Array,
  plans: Edit[][],
  at: { target?: number; pass: number; passes: number },
) => Promise<SweepTrial>;

/**
 * Every prompt under its own swap at each strength, then under each seed's controls. The effects of a plan's edits are
 * reported as one.
 */
export async function swapTrials(
  config: CompareConfig,
  context: Context,
  prompts: readonly Int32Array[],
  swap: Swap,
  {
    seeds,
    sweepOne,
    signal,
  }: { seeds: readonly number[]; sweepOne: SweepOne; signal: AbortSignal | undefined },
): Promise<SweepTrial[]> {
  const trials: SweepTrial[] = [];
  const perPrompt = 1 + seeds.length;
  const passes = prompts.length * perPrompt;
  for (const [index, prompt] of prompts.entries()) {
    const plans = await swapPlans(config, context, prompt, swap, signal);
    const trial = await sweepOne(prompt, plans, { pass: index * perPrompt, passes });
    const rows = measured(trial, plans);
    for (const [i, seed] of seeds.entries()) {
      // The norm of a control at each place is only known from the swap's run.
      const controls = plans.map((edits, row) =>
        controlPlan(edits, trial.rows[row]?.effects as EditEffect[], seed),
      );
      const pass = index * perPrompt + 1 + i;
      rows.push(
        ...measured(await sweepOne(prompt, controls, { target: trial.target, pass, passes }), controls),
      );
    }
    trials.push({ ...trial, rows });
  }
  return trials;
}

function measured({ rows }: SweepTrial, plans: readonly Edit[][]): SweepTrial["rows"] {
  return rows.map((row, i) => ({ ...row, effects: [swapChange(row.effects, plans[i] as Edit[])] }));
}
