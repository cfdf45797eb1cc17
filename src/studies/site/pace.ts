import { setImmediate } from "node:timers/promises";

const sliceMs = 8;

/** Splits long work into slices, so that other requests are served in between. */
export class Pace {
  #since = performance.now();

  /** Await this between pieces of work of a few milliseconds each. */
  async turn(): Promise<void> {
    if (performance.now() - this.#since < sliceMs) return;
    await setImmediate();
    this.#since = performance.now();
  }
}
