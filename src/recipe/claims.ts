import { TaplineError } from "../client/index.js";
import type { Transport } from "../client/transport.js";
import { UserError } from "../contracts/user-error.js";

const nouns = {
  "/lab/vectors": "vector",
  "/lab/probes": "probe",
  "/lab/dictionaries": "dictionary",
} as const;

/** Where a service keeps what has a name. */
export type Shelf = keyof typeof nouns;

/** Names that a recipe's steps keep something under, so that it replaces nothing and leaves nothing on a service that is somebody's. */
export class Claims {
  readonly #http: Transport;
  /** What to do about a name that is taken. */
  readonly #instead: string;
  readonly #taken: string[] = [];

  constructor(http: Transport, instead: string) {
    this.#http = http;
    this.#instead = instead;
  }

  /** Takes a name. @throws UserError where somebody keeps something under it */
  async claim(shelf: Shelf, name: string): Promise<void> {
    const path = `${shelf}/${encodeURIComponent(name)}`;
    const there = await this.#http.json(path).then(
      () => true,
      (error: unknown) => {
        if (error instanceof TaplineError && error.status === 404) return false;
        throw error;
      },
    );
    if (there) {
      const noun = nouns[shelf];
      throw new UserError(
        `The server keeps a ${noun} ${name} already, which the recipe would replace: remove it with tapline ${noun} rm ${name}, or ${this.#instead}.`,
      );
    }
    this.#taken.push(path);
  }

  /** Removes what is kept under the names. */
  async release(): Promise<void> {
    for (const path of this.#taken.splice(0)) {
      // Whatever happened to the service, the others are still to be tried.
      await this.#http.json(path, { method: "DELETE" }).catch(() => {});
    }
  }
}
