import type { EngineName } from "../contracts/names.js";
import { UserError } from "../contracts/user-error.js";
import { Copies } from "./copies.js";
import type { Engine } from "./engine.js";
import { localEngine } from "./local.js";
import { progressOf } from "./progress.js";
import { slurmEngine } from "./slurm.js";
import { idOf, prepareFolder, type Submission, save, submissions } from "./submission.js";

export { type Followed, follow } from "./follow.js";
export { findSubmission } from "./submission.js";
export { progressOf, type Submission, submissions };

const engines = { local: localEngine, slurm: slurmEngine } satisfies Record<EngineName, unknown>;

/** @param program the command that runs tapline, as the engine's machines find it */
export function engineOf({ engine }: Pick<Submission, "engine">, program: readonly string[]): Engine {
  return engines[engine](program);
}

/** A submission that has not started. */
export function planned(
  settings: Submission["settings"],
  place: Pick<Submission, "engine" | "operation" | "out" | "parts" | "workers" | "engineOptions">,
): Submission {
  const id = idOf(settings, place.out, place.operation);
  return { ...place, id, submitted: new Date().toISOString(), settings, batches: [], stopped: false };
}

/**
 * Starts a submission, or joins the same one if it has been started before: then only parts that are neither complete nor active
 * start, and the number of parts is that of then.
 * @returns the submission, and whether it is an earlier one
 * @throws UserError if the folder belongs to another submission
 */
export async function start(
  home: string,
  wanted: Submission,
  program: readonly string[],
): Promise<{ submission: Submission; joined: boolean }> {
  const known = (await submissions(home)).filter(({ out }) => out === wanted.out);
  const same = known.find(({ id }) => id === wanted.id);
  const [other] = known;
  if (same !== undefined) checkSame(same, wanted);
  else if (other !== undefined && (await progressOf(other)).tokens !== undefined) {
    throw new UserError(
      `${wanted.out} has parts of another submission, ${other.id}. Choose another folder, or remove its folder parts.`,
    );
  }
  const { engine: name, workers, engineOptions } = wanted;
  const submission: Submission =
    same === undefined ? wanted : { ...same, engine: name, workers, engineOptions, stopped: false };
  await prepareFolder(submission);
  const engine = engineOf(submission, program);
  const [active, { parts }] = await Promise.all([engine.active(submission), progressOf(submission)]);
  const left = parts.filter(({ part, complete }) => !complete && !active.has(part)).map(({ part }) => part);
  if (left.length > 0) submission.batches.push({ handle: await engine.start(submission, left), parts: left });
  await save(home, submission);
  return { submission, joined: same !== undefined };
}

/** @throws UserError if a submission cannot be joined */
function checkSame({ id, parts, merged, out }: Submission, wanted: Submission): void {
  if (parts !== wanted.parts) {
    throw new UserError(`${id} has ${parts} parts, got --parts ${wanted.parts}. Omit it to continue.`);
  }
  if (merged) throw new UserError(`${id} is merged: its files are in ${out}.`);
}

/** Ends all parts of a submission; their finished files stay. */
export async function stop(home: string, submission: Submission, program: readonly string[]): Promise<void> {
  const engine = engineOf(submission, program);
  await engine.stop(submission);
  await new Copies(submission, engine, () => save(home, submission)).discard();
  submission.stopped = true;
  await save(home, submission);
}
