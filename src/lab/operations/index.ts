import type { Config, Result } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { inspect } from "./inspect.js";
import type { Findings, OperationInput } from "./operation.js";

/** Runs the operation that a configuration names. */
export async function runOperation(input: OperationInput<Config>): Promise<Findings<Result>> {
  const { config, ...rest } = input;
  switch (config.operation) {
    case "inspect":
      return inspect({ ...rest, config });
    default:
      throw new UserError(`This build does not offer ${config.operation} yet.`);
  }
}
