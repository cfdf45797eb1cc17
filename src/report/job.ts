import {
  contracts,
  InvalidInput,
  type Operation,
  operations,
  type Result,
  UserError,
  validate,
} from "../contracts/index.js";
import { publicConfig, publicResult } from "../findings/public-job.js";
import { listed } from "../text/words.js";

/** The input of a report: a completed job, or only a result. */
export interface ReportedJob {
  operation: Operation;
  result: Result;
  id?: string;
  config?: Record<string, unknown>;
  created?: number;
  started?: number | null;
  ended?: number | null;
}

/**
 * Reads a job in the Lab's format, the `report.json` of `tapline demo`, or only a result.
 * @throws UserError for anything else, and for a job without a result
 */
export function readJob(value: unknown): ReportedJob {
  const given = asObject(value);
  if (given === undefined) throw new UserError("A report needs a job or a result as a JSON object.");
  const inner = asObject(given.job);
  if (inner !== undefined && given.result === undefined) return readJob(inner);
  const result = given.result ?? (given.status === undefined ? given : undefined);
  const operation = operationOf(given, asObject(result) ?? {});
  if (result === undefined) {
    const why = typeof given.error === "string" ? ` (${given.error})` : "";
    throw new UserError(`The job has no result: its status is ${String(given.status)}${why}.`);
  }
  if (operation === undefined) {
    throw new UserError(`This JSON is neither a job nor the result of ${listed(operations, "or")}.`);
  }
  try {
    const checked = validate(contracts[operation].result, result) as Result;
    return {
      operation,
      result: checked,
      ...(typeof given.id === "string" ? { id: given.id } : {}),
      ...(asObject(given.config) === undefined ? {} : { config: asObject(given.config) }),
      ...(typeof given.created === "number" ? { created: given.created } : {}),
      ...(typeof given.started === "number" ? { started: given.started } : {}),
      ...(typeof given.ended === "number" ? { ended: given.ended } : {}),
    };
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    throw new UserError(`The result does not follow the contract of ${operation}: ${error.message}`);
  }
}

/** The job without local folders: reports are shared, and folders reveal the machine and its user. */
export function withoutFolders(job: ReportedJob): ReportedJob {
  const { config, result } = job;
  return {
    ...job,
    result: publicResult(result),
    ...(config === undefined ? {} : { config: publicConfig(config) }),
  };
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

/** The operation named by a job, or whose contract a result follows. */
function operationOf(job: Record<string, unknown>, result: Record<string, unknown>): Operation | undefined {
  if (operations.includes(job.operation as Operation)) return job.operation as Operation;
  return operations.find((operation) => {
    try {
      validate(contracts[operation].result, result);
      return true;
    } catch {
      return false;
    }
  });
}
