import { readFile, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../contracts/user-error.js";
import type { Merged } from "../lab/extraction/merge.js";
import type { MergedParts } from "../lab/parts/merge.js";
import { Copies } from "./copies.js";
import type { Engine } from "./engine.js";
import { progressOf, type SubmissionProgress } from "./progress.js";
import { logOf, partsFolder, type Submission, save } from "./submission.js";

/** How often a part is started without finishing one more file before it is given up. */
const attempts = 3;

/** The merged files of an extraction, or the result of another experiment. */
export type Followed = Merged | MergedParts;

export interface Following {
  home: string;
  engine: Engine;
  signal: AbortSignal;
  intervalMs: number;
  onProgress: (progress: SubmissionProgress, running: number) => void;
  /** Called before parts that ended without being complete are started again. */
  onRestart: (parts: readonly number[]) => void;
  /** Called when slow parts have been started a second time. */
  onCopy: (parts: readonly number[]) => void;
  onMerge: (done: number, total: number) => void;
}

/**
 * Waits until all parts are complete, starts again those that ended before and a second time those that are slow, and
 * merges them.
 * @throws UserError if a part makes no progress, or the submission was stopped; the signal's reason
 */
export async function follow(submission: Submission, following: Following): Promise<Followed> {
  const { engine, signal, home } = following;
  if (submission.merged)
    throw new UserError(`${submission.id} is merged: its files are in ${submission.out}.`);
  const tries = new Map<number, { done: number; count: number }>();
  // A part that has just ended may not have been seen to be complete: two looks in a row decide.
  let before = new Set<number>();
  const copies = new Copies(submission, engine, () => save(home, submission));
  for (;;) {
    signal.throwIfAborted();
    await copies.settle();
    const active = await engine.active(submission);
    const progress = await progressOf(submission);
    following.onProgress(progress, active.size);
    if (progress.complete === submission.parts) break;
    const ended = progress.parts.filter(({ part, complete }) => !complete && !active.has(part));
    const again = ended.filter(({ part }) => before.has(part));
    if (again.length > 0) {
      for (const { part, done } of again) {
        const last = tries.get(part);
        const count = last === undefined || done > last.done ? 1 : last.count + 1;
        if (count >= attempts) throw new UserError(await failureOf(submission, part, active.size));
        tries.set(part, { done, count });
      }
      const parts = again.map(({ part }) => part);
      following.onRestart(parts);
      submission.batches.push({ handle: await engine.start(submission, parts), parts });
      await save(home, submission);
      before = new Set();
    } else {
      before = new Set(ended.map(({ part }) => part));
      const slow = await copies.start(progress, active);
      if (slow.length > 0) following.onCopy(slow);
    }
    await sleep(following.intervalMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
  await copies.settle();
  const merged = await merge(submission, following);
  submission.merged = true;
  await save(home, submission);
  await rm(partsFolder(submission), { recursive: true, force: true, maxRetries: 3 });
  return merged;
}

/** Loaded only now: Parquet and the operations would delay every list of submissions. */
async function merge(submission: Submission, { signal, onMerge }: Following): Promise<Followed> {
  const folder = partsFolder(submission);
  if ((submission.operation ?? "extract") !== "extract") {
    return (await import("../lab/parts/merge.js")).mergeParts(folder, submission.out);
  }
  const { mergeExtraction } = await import("../lab/extraction/merge.js");
  return mergeExtraction(folder, submission.out, { signal, onTokens: onMerge });
}

async function failureOf(submission: Submission, part: number, others: number): Promise<string> {
  const log = logOf(submission, part);
  const text = await readFile(log, "utf8").catch(() => "");
  const last = text.trim().split("\n").at(-1)?.slice(-300);
  const rest =
    others === 0
      ? ""
      : others === 1
        ? " One other part keeps running."
        : ` ${others} other parts keep running.`;
  return (
    `Part ${part} of ${submission.parts} ended ${attempts} times without finishing another file.` +
    `${last ? ` It said: ${last.replace(/^tapline: /, "")}` : ""} Its log: ${log}.${rest}`
  );
}
