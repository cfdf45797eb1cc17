import compare from "./compare/run.js";
import type { Config, Operation, Result } from "./contracts.js";
import drift from "./drift/run.js";
import explain from "./explain/run.js";
import extract from "./extract/run.js";
import features from "./features/run.js";
import graph from "./graph/run.js";
import inspect from "./inspect/run.js";
import patchSweep from "./patch_sweep/run.js";
import probe from "./probe/run.js";
import type { Findings, OperationInput, Run } from "./run.js";
import sae from "./sae/run.js";

/** How each operation is carried out. */
const runs: { [O in Operation]: Run<O> } = {
  inspect,
  compare,
  probe,
  sae,
  features,
  extract,
  drift,
  patch_sweep: patchSweep,
  explain,
  graph,
};

/** How the operation of a configuration is carried out. */
export function runOf(operation: Operation): Run<never> {
  return runs[operation] as Run<never>;
}

/** Carries out the operation that a configuration names. */
export function runOperation(input: OperationInput<Config>): Promise<Findings<Result>> {
  return runOf(input.config.operation).run(input as never);
}
