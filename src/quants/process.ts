/** Measures in its own process, which ends with the one that started it. */
import { type Line, runTask, type Task } from "./measure.js";

export type Message = { line: Line } | { failed: string } | { done: true };

const send = (message: Message) => new Promise<void>((resolve) => process.send!(message, () => resolve()));

for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {}); // the command handles them
process.once("disconnect", () => process.exit(1));
process.once("message", (task: Task) => {
  runTask(task, (line) => send({ line }))
    .then(
      () => send({ done: true }),
      (error) => send({ failed: error instanceof Error ? error.message : String(error) }),
    )
    .then(() => process.exit(0));
});
