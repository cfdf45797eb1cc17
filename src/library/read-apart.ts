import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { HttpError } from "../http/index.js";
import type { LibraryTask, Taken } from "./read-process.js";

// The same file beside this one, from src/ under tsx and from dist/.
const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
const program = fileURLToPath(new URL(`./read-process.${extension}`, import.meta.url));

/**
 * Imports a dictionary or a lens in a separate process, because converting a gigabyte of weights takes seconds.
 * @throws HttpError with the reason if it is refused
 */
export function readApart(task: LibraryTask, signal: AbortSignal): Promise<object> {
  const gone = () => new HttpError(400, "The client disconnected.");
  if (signal.aborted) return Promise.reject(gone());
  const child = fork(program, [], { execArgv: process.execArgv, stdio: ["ignore", "ignore", "pipe", "ipc"] });
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-2000);
  });
  // Not killed, so that a download releases its lock.
  const stop = () => {
    if (child.connected) child.disconnect();
  };
  signal.addEventListener("abort", stop, { once: true });
  return new Promise<object>((resolve, reject) => {
    child.once("message", (answer: Taken) => {
      if ("stored" in answer) resolve(answer.stored);
      else reject(new HttpError(400, answer.refused));
    });
    child.once("error", reject);
    child.once("close", () =>
      reject(
        signal.aborted
          ? gone()
          : new Error(`The library process exited without a result for this ${task.kind}: ${said}`),
      ),
    );
    child.send(task, () => {});
  }).finally(() => signal.removeEventListener("abort", stop));
}
