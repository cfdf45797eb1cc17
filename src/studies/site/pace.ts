import { setImmediate } from "node:timers/promises";

const sliceMs = 8;

/** Long work in slices: others get their turn in between. */
export class Pace {
  #since = performance.now();

  /** To be awaited between pieces of work, each of which takes a few milliseconds at most. */
  async turn(): Promise<void> {
    if (performance.now() - this.#since < sliceMs) return;
    await setImmediate();
    this.#since = performance.now();
  }
}
