import { shellWord } from "../text/shell.js";
import type { Submission } from "./submission.js";

/** Runs parts outside of this process; they continue when this process ends. */
export interface Engine {
  /** What `start` would run, as a shell script. */
  script(submission: Submission): string;
  /** Starts parts. @returns the handle @throws UserError */
  start(submission: Submission, parts: readonly number[]): Promise<string>;
  /** The parts that are waiting or running. @throws UserError if the engine cannot be asked */
  active(submission: Submission): Promise<Set<number>>;
  stop(submission: Submission): Promise<void>;
}

/** The command that computes a part, whose number is in a shell variable. */
export function partCommand(
  { parts, operation = "extract" }: Pick<Submission, "parts" | "operation">,
  variable: string,
  { program, settings, folder }: { program: readonly string[]; settings: string; folder: string },
): string {
  const words = [
    ...program,
    operation === "patch_sweep" ? "patch" : operation,
    ...["--config", settings],
    "--lab",
    "new",
    "--quiet",
    "--json",
  ];
  words.push("--out", folder);
  return `${words.map(shellWord).join(" ")} --shard "$${variable}/${parts}"`;
}
