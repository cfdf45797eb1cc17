import { itemsOf } from "../formats/parts.js";
import type { Config, Result } from "./contracts.js";
import type { Findings, OperationInput, Split } from "./run.js";

/** Computes all items in this process. */
export async function runWhole<C extends Config, R extends Result, Head, Item>(
  split: Split<C, R, Head, Item>,
  input: OperationInput<C>,
): Promise<Findings<R>> {
  const all = await split.compute(input, itemsOf(split.count(input.config), [0, 1]));
  return input.clock.measure("artifact", () => split.finish(input.config, all, input.artifacts));
}
