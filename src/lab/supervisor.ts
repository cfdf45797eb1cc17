import { type ChildProcess, fork, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Config, Progress, Result } from "../contracts/index.js";
import { limits } from "../contracts/index.js";
import { lostRpcServers } from "../models/rpc.js";
import type { PartTask } from "./parts/compute.js";
import type { LoadSettings, WorkerMessage, WorkerTask } from "./worker/messages.js";

/** The program that Node runs as a worker. */
export interface WorkerProgram {
  entry: string;
  /** Node options, such as a loader. */
  execArgv: string[];
}

export interface WorkerRun {
  config: Config;
  folder: string;
  /** File descriptor for the worker's standard output and error. */
  log: number;
  onProgress: (progress: Progress) => void;
  /** Kills the worker and its children. */
  signal: AbortSignal;
  deadlineMs?: number | undefined;
  load?: LoadSettings | undefined;
  /** Compute only this part of the experiment. */
  part?: PartTask | undefined;
  /** Folder of the user's library. */
  library: string;
  program?: WorkerProgram | undefined;
}

/** The longest deadline that timers allow, 24 days: for parts, whose scheduler decides how long they may take. */
export const longestDeadlineMs = 2 ** 31 - 1;

/** How a worker ended; `stopped` if the signal ended it before it had a result. */
export type Outcome =
  | { kind: "result"; result: Result }
  | { kind: "failure"; message: string }
  | { kind: "stopped" };

// The same file beside this one, from src/ under tsx and from dist/.
const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
const ownProgram: WorkerProgram = {
  entry: fileURLToPath(new URL(`./worker/main.${extension}`, import.meta.url)),
  execArgv: process.execArgv,
};

/**
 * Runs one job in a separate process and reports how it ended. Never rejects because of the worker, which may be
 * killed, abort, run out of memory or hang. Settles only once the process has exited.
 */
export function runWorker(run: WorkerRun): Promise<Outcome> {
  if (run.signal.aborted) return Promise.resolve({ kind: "stopped" });
  const deadlineMs = run.deadlineMs ?? limits.worker_deadline_seconds * 1000;
  const spawnedAt = Date.now();
  // A separate process group (detached), so that one signal reaches the worker and its children, and a Ctrl-C in the
  // terminal reaches only the service, which then ends the worker cleanly.
  const { entry, execArgv } = run.program ?? ownProgram;
  const child = fork(entry, [], {
    execArgv,
    detached: process.platform !== "win32",
    stdio: ["ignore", run.log, run.log, "ipc"],
    env: { ...process.env, GGML_NO_BACKTRACE: "1", TAPLINE_HOME: run.library },
  });
  return new Promise((resolve) => {
    let outcome: Outcome | undefined;
    const settle = (decided: Outcome) => {
      outcome ??= decided;
    };
    const stop = () => {
      settle({ kind: "stopped" });
      killTree(child);
    };
    const deadline = setTimeout(() => {
      settle({
        kind: "failure",
        message: `The job ran longer than ${describeDuration(deadlineMs)} and was stopped.`,
      });
      killTree(child);
    }, deadlineMs);
    run.signal.addEventListener("abort", stop, { once: true });
    let startFault: Error | undefined;
    child.on("error", (error) => {
      startFault ??= error;
      if (child.pid === undefined) finish(null, null);
    });
    child.on("message", (message: WorkerMessage) => {
      if (message.type === "progress") {
        if (outcome === undefined) run.onProgress(message.progress);
        return;
      }
      settle(
        message.type === "result"
          ? { kind: "result", result: message.result }
          : { kind: "failure", message: message.message },
      );
      // It is done, and its children must not outlive it.
      killTree(child);
    });
    const finish = (code: number | null, signal: NodeJS.Signals | null) => {
      clearTimeout(deadline);
      run.signal.removeEventListener("abort", stop);
      killTree(child);
      if (outcome !== undefined) return resolve(outcome);
      void describeDeath(code, signal, startFault, run.load).then((message) =>
        resolve({ kind: "failure", message }),
      );
    };
    child.on("exit", () => killTree(child)); // its children may keep the channel open
    // "close" comes after the last message has been read, "exit" may come before it.
    child.on("close", finish);
    child.send(
      {
        ...{ config: run.config, folder: run.folder, spawnedAt, load: run.load ?? {} },
        ...(run.part && { part: run.part }),
      } satisfies WorkerTask,
      (error) => {
        if (error !== null) startFault ??= error;
      },
    );
  });
}

/** Kills a worker and everything in its process group. */
function killTree(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (process.platform === "win32") {
    if (child.exitCode !== null) return;
    const killed = spawn("taskkill", ["/pid", String(child.pid), "/T", "/F"], { stdio: "ignore" });
    // If it fails or is not on PATH, at least the worker itself ends.
    const alone = () => void child.kill("SIGKILL");
    killed.on("error", alone);
    killed.on("exit", (code) => code !== 0 && alone());
    return;
  }
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The whole group has already exited.
  }
}

async function describeDeath(
  code: number | null,
  signal: NodeJS.Signals | null,
  fault: Error | undefined,
  load: LoadSettings | undefined,
): Promise<string> {
  if (signal === "SIGABRT" && load?.rpc !== undefined) {
    const lost = await lostRpcServers(load.rpc);
    if (lost.length > 0) return `The rpc-server ${lost.join(" and ")} was lost while the job was running.`;
  }
  switch (signal) {
    case "SIGKILL":
      return "The worker was killed, most likely because the machine ran out of memory.";
    case "SIGABRT":
      return "The worker aborted, because it ran out of memory or a check in llama.cpp failed; see its worker.log.";
    case "SIGSEGV":
    case "SIGBUS":
    case "SIGILL":
    case "SIGFPE":
      return `The worker crashed (${signal}); its worker.log has its last output.`;
    case null:
      break;
    default:
      return `The worker was terminated by ${signal}.`;
  }
  if (code === null)
    return `The worker could not be started: ${fault?.message ?? "the system gave no reason"}.`;
  return `The worker ended with code ${code} before it had a result; see its worker.log.`;
}

function describeDuration(ms: number): string {
  return ms >= 60_000 ? `${ms / 60_000} minutes` : `${ms / 1000} seconds`;
}
