/** What is said of the time that jobs take. */
import type { JobSummary } from "../../contracts/index.js";
import { Pace } from "../../terminal/pace.js";
import { duration } from "../../terminal/spans.js";

/** One for each job that runs, whoever shows it. */
const paces = new Map<string, Pace>();

/**
 * What is left of a job that runs, in words; of a stage whose extent the Lab does not tell, that it is not known.
 * @param now seconds of a clock that does not go back
 */
export function timeLeft({ id, status, progress }: JobSummary, now = performance.now() / 1000): string {
  if (status !== "running") {
    paces.delete(id);
    return "";
  }
  if (progress.total <= 0) return "how long this takes is not known";
  const pace = paces.get(id) ?? new Pace();
  paces.set(id, pace);
  const seconds = pace.left(progress, now);
  return seconds === undefined ? "" : `about ${duration(seconds)} left`;
}

/** `12 of 24`, or a percentage where the steps are no whole numbers. */
export function extent(done: number, total: number): string {
  if (total > 1 && Number.isInteger(done)) return `${done} of ${total}`;
  return `${Math.round((done / total) * 100)} %`;
}

/** What a job waits for: those that the Lab runs before it. */
export function waiting(jobs: readonly JobSummary[], { id, created }: JobSummary): string {
  const before = jobs.filter(
    (job) => job.status === "running" || (job.status === "queued" && job.id !== id && job.created < created),
  ).length;
  if (before === 0) return "waits for its turn";
  return `waits for ${before === 1 ? "1 job" : `${before} jobs`}`;
}
