import { shellWord } from "../text/shell.js";
import { copyFolder, partsFolder, type Submission, settingsFile, startedFile } from "./submission.js";

/** Runs parts outside of this process; they continue when this process ends. */
export interface Engine {
  /** What `start` would run, as a shell script. */
  script(submission: Submission): string;
  /**
   * Starts parts.
   * @param copies whether they run a second time, in separate folders
   * @returns the handle @throws UserError
   */
  start(submission: Submission, parts: readonly number[], copies?: boolean): Promise<string>;
  /** The parts that are waiting or running. @throws UserError if the engine cannot be asked */
  active(submission: Pick<Submission, "batches">): Promise<Set<number>>;
  /** Number of the submission's places that are in use. @throws UserError if the engine cannot be asked */
  busy(submission: Pick<Submission, "batches">): Promise<number>;
  /** Stops all parts, or only these; what runs in the same place after them also ends. */
  stop(submission: Pick<Submission, "batches">, parts?: readonly number[]): Promise<void>;
}

/** The commands that compute a part, whose number is in a shell variable: the first notes the time. */
export function partCommands(
  submission: Pick<Submission, "out" | "parts" | "operation">,
  variable: string,
  { program, copies }: { program: readonly string[]; copies: boolean },
): [note: string, compute: string] {
  const { parts, operation = "extract" } = submission;
  const part = `"$${variable}"`;
  const withPart = (name: (part: string) => string) => {
    const [before, after] = name("\0").split("\0") as [string, string];
    return `${shellWord(before)}${part}${after === "" ? "" : shellWord(after)}`;
  };
  const words = [
    ...program,
    operation === "patch_sweep" ? "patch" : operation,
    ...["--config", settingsFile(submission)],
    ...["--lab", "new", "--quiet", "--json", "--out"],
  ];
  const folder = copies
    ? withPart((part) => copyFolder(submission, part))
    : shellWord(partsFolder(submission));
  return [
    `: >${withPart((part) => startedFile(submission, part, copies))}`,
    `${words.map(shellWord).join(" ")} ${folder} --shard "$${variable}/${parts}"`,
  ];
}
