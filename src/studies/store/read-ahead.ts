import { setTimeout } from "node:timers/promises";

/** Runs one step and gives others their turn. Rejects when everything is to end. */
export type Pace = <T>(step: () => Promise<T>) => Promise<T>;

/**
 * Work that nobody waits for, in steps, one at a time: a request that comes meanwhile waits for one of them at most, and
 * after each there is as long a rest. What fails is left: whoever asks for it sees the fault.
 */
export class ReadAhead {
  readonly #work: (pace: Pace) => Promise<void>;
  #started = false;
  #wanted = false;
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;

  constructor(work: (pace: Pace) => Promise<void>) {
    this.#work = work;
  }

  /** @returns when it has been done, or ended */
  start(): Promise<void> {
    this.#started = true;
    this.again();
    return this.#running ?? Promise.resolve();
  }

  /** Does the work once more, where it was started: what it had made is gone. */
  again(): void {
    if (!this.#started || this.#end.signal.aborted) return;
    this.#wanted = true;
    this.#running ??= this.#run();
  }

  /** Ends the work after the step that it is at. Idempotent. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#wanted && !this.#end.signal.aborted) {
      this.#wanted = false;
      await this.#work((step) => this.#pace(step)).catch(() => {});
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
