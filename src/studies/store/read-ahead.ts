import { setTimeout } from "node:timers/promises";

/** Runs one step, then yields to requests. Rejects after `close`. */
export type Pace = <T>(step: () => Promise<T>) => Promise<T>;

/**
 * Background work in steps. A request waits for at most one step, and each step is followed by a pause of the same
 * length. Failures are ignored; a request that needs the data will report them.
 */
export class ReadAhead {
  #started = false;
  #wanted = false;
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;

  constructor(private readonly work: (pace: Pace) => Promise<void>) {}

  /** Resolves when the work is done or closed. */
  start(): Promise<void> {
    this.#started = true;
    this.again();
    return this.#running ?? Promise.resolve();
  }

  /** Repeats the work, if started, because its results were discarded. */
  again(): void {
    if (!this.#started || this.#end.signal.aborted) return;
    this.#wanted = true;
    this.#running ??= this.#run();
  }

  /** Stops after the current step. Idempotent. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#wanted && !this.#end.signal.aborted) {
      this.#wanted = false;
      await this.work((step) => this.#pace(step)).catch(() => {});
    }
    this.#running = undefined;
  }

  async #pace<T>(step: () => Promise<T>): Promise<T> {
    this.#end.signal.throwIfAborted();
    const begin = performance.now();
    const result = await step();
    await setTimeout(Math.min(1000, performance.now() - begin), undefined, { signal: this.#end.signal });
    return result;
  }
}
