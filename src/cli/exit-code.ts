import { CommanderError } from "commander";
import { UserError } from "../contracts/user-error.js";

/** What the exit codes of every command mean; docs/command-line.md tells users. */
export const exitCodes = { done: 0, failed: 1, usage: 2, unreachable: 3 } as const;

/** What was asked for makes no sense: a flag, a file of input, a value that a service refuses. */
export class UsageError extends UserError {
  override name = "UsageError";
}

/** Errors whose message is a sentence for a person; everything else is a fault and shown with its stack. */
const clientErrors = ["TaplineError", "ResearchError", "DraftMayExistError"];
const sentences = [
  "UserError",
  "UsageError",
  "NativeError",
  "AddonError",
  "TimeoutError",
  "InvalidInput",
  ...clientErrors,
];

/** What a person reads about an error. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return sentences.includes(error.name) ? error.message : (error.stack ?? error.message);
}

/** The exit code that an error ends the program with. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  if (error instanceof UsageError) return exitCodes.usage;
  // By name: the client's modules are only loaded by commands that use them.
  const { name, status, cause } = (error ?? {}) as {
    name?: string;
    status?: number;
    cause?: { code?: unknown };
  };
  if (name === "InvalidInput") return exitCodes.usage;
  if (name === "TimeoutError") return exitCodes.unreachable;
  if (!clientErrors.includes(name ?? "")) return exitCodes.failed;
  if (status === 400) return exitCodes.usage;
  const unreachable = status === 503 || (status === undefined && typeof cause?.code === "string");
  return unreachable ? exitCodes.unreachable : exitCodes.failed;
}
