/** The time that jobs take, in words. */
import type { JobSummary } from "../../contracts/index.js";
import { count } from "../../findings/numbers.js";
import { Pace } from "../../terminal/pace.js";
import { duration } from "../../terminal/spans.js";

/** One per running job. */
const paces = new Map<string, Pace>();

/**
 * The time remaining of a running job's stage.
 * @param now seconds of a monotonic clock
 */
export function timeLeft({ id, status, progress }: JobSummary, now = performance.now() / 1000): string {
  if (status !== "running") {
    paces.delete(id);
    return "";
  }
  if (progress.total <= 0) return "Time remaining: unknown";
  const pace = paces.get(id) ?? new Pace();
  paces.set(id, pace);
  const seconds = pace.left(progress, now);
  return seconds === undefined ? "" : `about ${duration(seconds)} left`;
}

/** `12 of 24`, or a percentage if the steps are not integers. */
export function extent(done: number, total: number): string {
  if (total > 1 && Number.isInteger(done)) return `${done} of ${total}`;
  return `${Math.round((done / total) * 100)} %`;
}

/** How many jobs run before a queued one. */
export function waiting(jobs: readonly JobSummary[], { id, created }: JobSummary): string {
  const before = jobs.filter(
    (job) => job.status === "running" || (job.status === "queued" && job.id !== id && job.created < created),
  ).length;
  return before === 0 ? "Queued" : `Queued after ${count(before, "job")}`;
}
