import type { Job, Operation } from "../contracts/index.js";
import type { CompletedJob, Lab, Settings } from "./lab.js";

/** Polling interval for jobs, in milliseconds. */
export const intervalMs = 200;

interface Watching {
  signal: AbortSignal;
  onProgress: (job: Job) => void;
  /** Overall deadline in milliseconds, instead of {@link Lab.wait}'s own. */
  timeoutMs?: number;
}

/** Waits until a job has completed; the signal cancels it. @throws TaplineError, the signal's reason */
export async function waitOrCancel(lab: Lab, id: string, options: Watching): Promise<CompletedJob> {
  try {
    return await lab.wait(id, { ...options, intervalMs });
  } catch (error) {
    if (options.signal.aborted) await lab.cancel(id).catch(() => {}); // a stopped Lab has already cancelled it
    throw error;
  }
}

/** Submits a job to a Lab and waits for it; the signal cancels it. */
export async function runJob(
  lab: Lab,
  { operation, model, settings }: { operation: Operation; model: string; settings: object },
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<CompletedJob> {
  const { id } = await lab.submit(operation, model, settings as unknown as Settings<Operation>);
  const onProgress = ({ progress }: Job) => {
    if (progress !== undefined) onStage(`${progress.stage} ${progress.done}/${progress.total}`);
  };
  return waitOrCancel(lab, id, { signal, onProgress });
}
