import { constants } from "node:os";

/**
 * npx does not forward signals, and leaves its child running when a signal ends it. A process started by npx, or by a program
 * that gives its own id, therefore checks whether its parent has changed.
 */
const given = process.env.TAPLINE_PARENT;
const watched = given !== undefined || process.env.npm_lifecycle_event === "npx";
const parent = given === undefined ? process.ppid : Number(given);
const lookMs = 500;

/**
 * Resolves with the name of the first signal that asks this process to end: Ctrl-C, SIGTERM, or a closed terminal. A
 * second signal ends the process immediately.
 * @param otherwise returns true if it has handled a SIGHUP that has another meaning
 */
export function stopSignal(otherwise: () => boolean = () => false): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first = true;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (signal === "SIGHUP" && otherwise()) return;
        if (!first && signal !== "SIGHUP") process.exit(128 + constants.signals[signal]);
        first = false;
        resolve(signal);
      });
    }
    if (!watched) return;
    const looking = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(looking);
      process.kill(process.pid, "SIGTERM");
    }, lookMs);
    looking.unref();
  });
}

/** A signal that is aborted by the first request to end this process, with the signal's name as the reason. */
export function stoppable(): AbortSignal {
  const stop = new AbortController();
  void stopSignal().then((signal) => stop.abort(signal));
  return stop.signal;
}

/**
 * Ends this process with a signal that it has caught, after cleaning up, so that its parent sees the same as without a
 * handler. This also avoids Node's own exit, which in some versions aborts if the terminal whose settings it restores is
 * closed.
 */
export function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
