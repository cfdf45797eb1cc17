import type { Progress } from "../contracts/index.js";

/**
 * How fast a job goes, and what the rest of its stage takes at that speed. The Lab tells the stage, how much of it is done
 * and how much there is; whoever looks adds the time between two looks.
 */
export class Pace {
  #begun: { stage: string; at: number; done: number } | undefined;

  /**
   * @param now in seconds, of any clock that does not go back
   * @returns seconds that are left of the stage; undefined while that says little, or where its extent is not known
   */
  left({ stage, done, total }: Progress, now: number): number | undefined {
    if (this.#begun?.stage !== stage || done < this.#begun.done) this.#begun = { stage, at: now, done };
    const [seconds, made, rest] = [now - this.#begun.at, done - this.#begun.done, total - done];
    return seconds < 1 || made <= 0 || rest <= 0 ? undefined : (seconds / made) * rest;
  }
}
