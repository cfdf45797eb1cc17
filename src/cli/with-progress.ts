import { JobProgress } from "../terminal/index.js";
import { endBy, stoppable } from "./stop-signal.js";

/**
 * Runs work in this process, with its progress on standard error, then shows the result. A signal aborts the work and, after it
 * has cleaned up, ends this process.
 */
export async function withProgress<Result>(
  { quiet = false }: { quiet?: boolean },
  work: (progress: JobProgress, signal: AbortSignal) => Promise<Result>,
  show: (result: Result) => Promise<void>,
): Promise<void> {
  const signal = stoppable();
  const progress = new JobProgress(quiet ? { write: () => {} } : process.stderr);
  try {
    const result = await work(progress, signal);
    progress.clear();
    await show(result);
  } catch (error) {
    progress.clear();
    if (signal.aborted) return endBy(signal.reason);
    throw error;
  }
}
