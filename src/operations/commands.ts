import type { Command } from "commander";
import compare from "./compare/command.js";
import type { Operation } from "./contracts.js";
import drift from "./drift/command.js";
import explain from "./explain/command.js";
import extract from "./extract/command.js";
import features from "./features/command.js";
import graph from "./graph/command.js";
import inspect from "./inspect/command.js";
import patchSweep from "./patch_sweep/command.js";
import probe from "./probe/command.js";
import sae from "./sae/command.js";

/** The command of each operation, in the order in which help lists them. */
export const commands: Record<Operation, (program: Command) => void> = {
  inspect,
  compare,
  probe,
  features,
  patch_sweep: patchSweep,
  sae,
  extract,
  drift,
  explain,
  graph,
};
