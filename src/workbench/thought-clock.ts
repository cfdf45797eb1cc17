import type { AnswerToken } from "./wire.js";

/** How long one answer thinks, by the clock of who hears it: no event of the server says when a token was made. */
export class ThoughtClock {
  readonly #now: () => number;
  #begun: number | undefined;
  /** Nothing more is to be found out. */
  #over: boolean;

  /**
   * @param kept the tokens that the answer begins with; of another answer's thoughts nobody knows how long they took
   * @param now seconds of a clock that does not go back
   */
  constructor(kept: readonly AnswerToken[], now = () => performance.now() / 1000) {
    this.#over = kept.some(isThought);
    this.#now = now;
  }

  /** Hears the tokens of one event. @returns how long it thought, once, where they are the first that are said */
  hear(tokens: readonly AnswerToken[]): number | undefined {
    if (this.#over) return undefined;
    const earlier = this.#begun !== undefined;
    if (tokens.some(isThought)) this.#begun ??= this.#now();
    if (this.#begun === undefined || !tokens.some((token) => !isThought(token))) return undefined;
    // Where all of it came at once, how long it took is not known.
    if (!earlier) this.#over = true;
    return this.end();
  }

  /** The answer is at its end. @returns how long it thought, where it still did */
  end(): number | undefined {
    if (this.#over || this.#begun === undefined) return undefined;
    this.#over = true;
    return this.#now() - this.#begun;
  }
}

function isThought({ thinking }: AnswerToken): boolean {
  return thinking === true;
}
