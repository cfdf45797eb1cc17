import { UserError } from "../contracts/user-error.js";
import { startTask, type TaskMessage } from "../native/task-process.js";
import type { Line, Task } from "./measure.js";

/** Runs a task in its own process. @throws UserError with its sentence, the signal's reason */
export async function runApart(
  task: Task,
  signal: AbortSignal,
  onLine: (line: Line) => Promise<void>,
): Promise<void> {
  signal.throwIfAborted();
  const { child, lastLines, release } = startTask(import.meta.url, {}, signal);
  try {
    let end: string | undefined;
    let written = Promise.resolve();
    child.on("message", (message: TaskMessage<{ line: Line }>) => {
      if ("line" in message) written = written.then(() => onLine(message.line));
      else end = "failed" in message ? message.failed : "";
      written.catch(() => {}); // reported after the process has ended
    });
    child.send(task);
    const [code, signalName] = await new Promise<[number | null, string | null]>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (...how) => resolve(how));
    });
    await written;
    signal.throwIfAborted();
    const died = `The measuring process ended with ${signalName ?? code}: ${lastLines(1)}`;
    if (end !== "") throw new UserError(end ?? died);
  } finally {
    release();
  }
}
