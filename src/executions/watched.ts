/** A token in `tapline.tokens` of an answer. */
export interface WatchedToken {
  token?: unknown;
  probes?: unknown;
  projections?: unknown;
}

interface Sums {
  count: number;
  sum: number;
  highest: number;
  /** The token with the highest value. */
  token: string;
}

/** More than a request may watch; a third-party backend might send any number. */
const most = 32;
const shownCharacters = 40;

/** Summarizes the watched probes and projections over the tokens of one answer. */
export class Watched {
  readonly #sums = new Map<string, Sums>();

  add(tokens: readonly WatchedToken[]): void {
    for (const { token, probes, projections } of tokens) {
      const text = typeof token === "string" ? token : "";
      for (const [noun, values] of [
        ["probe", probes],
        ["projection", projections],
      ] as const) {
        for (const [name, value] of Object.entries(values ?? {})) {
          if (typeof value === "number" && Number.isFinite(value)) this.#take(`${noun} ${name}`, value, text);
        }
      }
    }
  }

  /** One line of text per probe or projection. */
  lines(): string[] {
    return [...this.#sums].map(
      ([name, { count, sum, highest, token }]) =>
        `${name}: mean ${(sum / count).toPrecision(4)} of ${count} ${count === 1 ? "token" : "tokens"}, ` +
        `highest ${highest.toPrecision(4)} at ${JSON.stringify(token.slice(0, shownCharacters))}`,
    );
  }

  #take(name: string, value: number, token: string): void {
    const sums = this.#sums.get(name);
    if (sums === undefined) {
      if (this.#sums.size < most) this.#sums.set(name, { count: 1, sum: value, highest: value, token });
      return;
    }
    sums.count++;
    sums.sum += value;
    if (value > sums.highest) Object.assign(sums, { highest: value, token });
  }
}
