import { TaplineError } from "../client/index.js";
import type { Transport } from "../client/transport.js";
import { UserError } from "../contracts/user-error.js";

const nouns = {
  "/lab/vectors": "vector",
  "/lab/probes": "probe",
  "/lab/dictionaries": "dictionary",
} as const;

/** A service's endpoint for saved items. */
export type Shelf = keyof typeof nouns;

/** Names under which a recipe's steps save items, so that a run overwrites nothing and leaves nothing on a user's service. */
export class Claims {
  readonly #taken: string[] = [];

  constructor(
    private readonly http: Transport,
    /** Advice if a name is taken. */
    private readonly instead: string,
  ) {}

  /** Reserves a name. @throws UserError if it is taken */
  async claim(shelf: Shelf, name: string): Promise<void> {
    const path = `${shelf}/${encodeURIComponent(name)}`;
    const there = await this.http.json(path).then(
      () => true,
      (error: unknown) => {
        if (error instanceof TaplineError && error.status === 404) return false;
        throw error;
      },
    );
    if (there) {
      const noun = nouns[shelf];
      throw new UserError(
        `The server already has a ${noun} ${name}, which the recipe would overwrite. Remove it with tapline ${noun} rm ${name}, or ${this.instead}.`,
      );
    }
    this.#taken.push(path);
  }

  /** Deletes the items saved under these names. */
  async release(): Promise<void> {
    for (const path of this.#taken.splice(0)) {
      // Continues after an error, to delete as many as possible.
      await this.http.json(path, { method: "DELETE" }).catch(() => {});
    }
  }
}
