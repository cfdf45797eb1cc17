import { CommanderError } from "commander";
import { UserError } from "../contracts/user-error.js";

/** Exit codes of all commands; documented in docs/command-line.md. */
export const exitCodes = { done: 0, failed: 1, usage: 2, unreachable: 3 } as const;

/** Invalid usage: an option, an input file, or a value that a service rejects. */
export class UsageError extends UserError {
  override name = "UsageError";
}

/** Errors whose message is meant for users; all others are bugs and shown with their stack. */
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

/** The text to show for an error. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return sentences.includes(error.name) ? error.message : (error.stack ?? error.message);
}

/** The exit code for an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  if (error instanceof UsageError) return exitCodes.usage;
  // By name, so that commands that do not use the client need not load it.
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
