import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { UserError } from "../contracts/user-error.js";
import type { Line, Task } from "./measure.js";
import type { Message } from "./process.js";

// The same file beside this one, from src/ under tsx and from dist/.
const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
const program = fileURLToPath(new URL(`./process.${extension}`, import.meta.url));

/** Runs a task in its own process. @throws UserError with its sentence, the signal's reason */
export async function runApart(
  task: Task,
  signal: AbortSignal,
  onLine: (line: Line) => Promise<void>,
): Promise<void> {
  signal.throwIfAborted();
  const child = fork(program, [], {
    env: { ...process.env, GGML_NO_BACKTRACE: "1" },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    execArgv: process.execArgv,
  });
  let log = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-4000);
  });
  const stop = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  try {
    let end: string | undefined;
    let written = Promise.resolve();
    child.on("message", (message: Message) => {
      if ("line" in message) written = written.then(() => onLine(message.line));
      else end = "failed" in message ? message.failed : "";
    });
    child.send(task);
    const [code, signalName] = await new Promise<[number | null, string | null]>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (...how) => resolve(how));
    });
    await written;
    signal.throwIfAborted();
    const died = `The measuring process ended with ${signalName ?? code}: ${log.trim().split("\n").at(-1)}`;
    if (end !== "") throw new UserError(end ?? died);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
