import { setImmediate } from "node:timers/promises";

/** Runs one step once others had their turn. Rejects when everything is to end. */
export type Pace = <T>(step: () => Promise<T>) => Promise<T>;

/**
 * Work that nobody waits for, in steps, one at a time: a request that comes meanwhile waits for one of them at most.
 * What fails is left: whoever asks for it sees the fault.
 */
export class ReadAhead {
  readonly #work: (pace: Pace) => Promise<void>;
  #started = false;
  #wanted = false;
  #ended = false;
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
    if (!this.#started || this.#ended) return;
    this.#wanted = true;
    this.#running ??= this.#run();
  }

  /** Ends the work after the step that it is at. Idempotent. */
  async close(): Promise<void> {
    this.#ended = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#wanted && !this.#ended) {
      this.#wanted = false;
      await this.#work((step) => this.#pace(step)).catch(() => {});
    }
    this.#running = undefined;
  }

  async #pace<T>(step: () => Promise<T>): Promise<T> {
    await setImmediate();
    if (this.#ended) throw new Error("The store is closing.");
    return step();
  }
}
