import type { Config, Result } from "../contracts/index.js";
import { compare } from "./compare/run.js";
import { drift } from "./drift/run.js";
import { explain } from "./explain/run.js";
import { extract } from "./extract/run.js";
import { features } from "./features/run.js";
import { inspect } from "./inspect/run.js";
import type { Findings, OperationInput } from "./run.js";
import { patchSweep } from "./patch_sweep/run.js";
import { probe } from "./probe/run.js";
import { sae } from "./sae/run.js";

/** Runs the operation that a configuration names. */
export async function runOperation(input: OperationInput<Config>): Promise<Findings<Result>> {
  const { config, ...rest } = input;
  switch (config.operation) {
    case "inspect":
      return inspect({ ...rest, config });
    case "compare":
      return compare({ ...rest, config });
    case "probe":
      return probe({ ...rest, config });
    case "sae":
      return sae({ ...rest, config });
    case "features":
      return features({ ...rest, config });
    case "extract":
      return extract({ ...rest, config });
    case "drift":
      return drift({ ...rest, config });
    case "patch_sweep":
      return patchSweep({ ...rest, config });
    case "explain":
      return explain({ ...rest, config });
  }
}
