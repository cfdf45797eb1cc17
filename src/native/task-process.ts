import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A process that computes one task, so that a crash in native code is a result, and not the end of the program. */
export interface TaskProcess {
  child: ChildProcess;
  /** The last lines that it wrote to standard error; empty if there are none. */
  lastLines(most: number): string[];
  kill(): void;
  /** Forgets the signal. */
  release(): void;
}

/** Messages of every task's process: parts of its result, then whether it came to its end. */
export type TaskMessage<Part> = Part | { failed: string } | { done: true };

/**
 * Starts the module `process` next to a module, from src/ under tsx and from dist/.
 * @param signal kills it
 */
export function startTask(
  moduleUrl: string,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal | undefined,
): TaskProcess {
  const extension = moduleUrl.endsWith(".ts") ? "ts" : "js";
  const child = fork(fileURLToPath(new URL(`./process.${extension}`, moduleUrl)), [], {
    env: { ...process.env, GGML_NO_BACKTRACE: "1", ...env },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    execArgv: process.execArgv,
  });
  let log = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-4000);
  });
  const kill = () => void child.kill("SIGKILL");
  signal?.addEventListener("abort", kill, { once: true });
  return {
    child,
    lastLines: (most) => log.trim().split("\n").slice(-most),
    kill,
    release: () => signal?.removeEventListener("abort", kill),
  };
}

/** The other side: runs the task that is sent, sends parts of its result, and ends with the one that started it. */
export function serveTask<Task, Part>(
  run: (task: Task, send: (part: Part) => Promise<void>) => Promise<void>,
): void {
  const send = (message: TaskMessage<Part>) =>
    new Promise<void>((resolve) => process.send!(message, () => resolve()));
  process.once("disconnect", () => process.exit(1));
  process.once("message", (task: Task) => {
    run(task, send)
      .then(
        () => send({ done: true }),
        (error) => send({ failed: error instanceof Error ? error.message : String(error) }),
      )
      .then(() => process.exit(0));
  });
}
