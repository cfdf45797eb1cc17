import { constants } from "node:os";

/**
 * npx passes no signal on: ended by one, it leaves what it started behind. A process that npx started therefore looks
 * whether its parent is still the one it had.
 */
const startedByNpx = process.env.npm_lifecycle_event === "npx";
const parent = process.ppid;
const lookMs = 500;

/**
 * Resolves with the name of the first signal that asks this process to end: Ctrl-C, SIGTERM, or a closed
 * terminal. From then on, a second one ends the process at once.
 * @param otherwise whether a SIGHUP means something else, and was dealt with
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
    if (!startedByNpx) return;
    const looking = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(looking);
      process.kill(process.pid, "SIGTERM");
    }, lookMs);
    looking.unref();
  });
}

/** Aborted by the first signal that asks this process to end, with the signal's name as the reason. */
export function stoppable(): AbortSignal {
  const stop = new AbortController();
  void stopSignal().then((signal) => stop.abort(signal));
  return stop.signal;
}

/**
 * Ends this process by a signal that it has caught, once everything is cleaned up: whoever waits for it sees the
 * same as without a handler. It also spares Node's own exit, which in some versions aborts when the terminal
 * whose settings it wants to restore is gone.
 */
export function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
