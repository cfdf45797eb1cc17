import { setImmediate } from "node:timers/promises";

/** Longest time without a pause, in milliseconds: messages, such as a cancellation, wait that long. */
const mostMs = 25;

/** Lets the worker answer messages during a long computation in JavaScript. */
export class Pause {
  #last = performance.now();

  constructor(private readonly signal?: AbortSignal) {}

  isDue(): boolean {
    return performance.now() - this.#last >= mostMs;
  }

  /** @throws the signal's reason if it is aborted */
  async take(): Promise<void> {
    await setImmediate();
    this.signal?.throwIfAborted();
    this.#last = performance.now();
  }
}
