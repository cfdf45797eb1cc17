import type { AnswerToken, TurnAnswer } from "./wire.js";

/** Measures how long an answer thinks. The server does not report when it made a token. */
export class ThoughtClock {
  readonly #now: () => number;
  #begun: number | undefined;
  /** The measurement has ended. */
  #over: boolean;

  /**
   * @param first tokens carried over from another answer; the time of their thinking is unknown
   * @param now seconds of a monotonic clock
   */
  constructor(first: readonly AnswerToken[], now = () => performance.now() / 1000) {
    this.#over = first.some(isThought);
    this.#now = now;
  }

  /** Takes the tokens of one event. @returns once, with the first token after the thinking, how long it took */
  read(tokens: readonly AnswerToken[]): number | undefined {
    if (this.#over) return undefined;
    const earlier = this.#begun !== undefined;
    if (tokens.some(isThought)) this.#begun ??= this.#now();
    if (this.#begun === undefined || !tokens.some((token) => !isThought(token))) return undefined;
    // The time is unknown if everything arrived at the same time.
    if (!earlier) this.#over = true;
    return this.end();
  }

  /** The answer has ended. @returns how long it thought, if it was still thinking */
  end(): number | undefined {
    if (this.#over || this.#begun === undefined) return undefined;
    this.#over = true;
    return this.#now() - this.#begun;
  }
}

function isThought({ thinking }: AnswerToken): boolean {
  return thinking === true;
}

/** The text of an answer, without thinking and special tokens. */
export function textOf({ tokens }: TurnAnswer): string {
  return tokens
    .map(({ text, thinking, special }) => (thinking === true || special === true ? "" : text))
    .join("");
}
