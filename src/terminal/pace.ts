import type { Progress } from "../contracts/index.js";

/** Estimates the time remaining of a job's stage from its progress and a clock. */
export class Pace {
  #begun: { stage: string; at: number; done: number } | undefined;

  /**
   * @param now seconds of any monotonic clock
   * @returns seconds remaining of the stage; undefined without enough data or a known total
   */
  left({ stage, done, total }: Progress, now: number): number | undefined {
    if (this.#begun?.stage !== stage || done < this.#begun.done) this.#begun = { stage, at: now, done };
    const [seconds, made, rest] = [now - this.#begun.at, done - this.#begun.done, total - done];
    return seconds < 1 || made <= 0 || rest <= 0 ? undefined : (seconds / made) * rest;
  }
}
