/** One task in its own process: a crash is a result, and not the end of the program. */
import { checkModel, type Task } from "./check-model.js";
import type { Found } from "./found.js";

/** Messages of the process: each check's result, then whether it came to its end. */
export type Message = { found: Found } | { failed: string } | { done: true };

const send = (message: Message) => new Promise<void>((resolve) => process.send!(message, () => resolve()));

process.once("message", (task: Task) => {
  checkModel(task, (found) => void send({ found }))
    .then(
      () => send({ done: true }),
      (error) => send({ failed: error instanceof Error ? error.message : String(error) }),
    )
    .then(() => process.exit(0));
});
process.once("disconnect", () => process.exit(1));
