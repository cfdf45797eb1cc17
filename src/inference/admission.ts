import { inferenceLimits } from "../contracts/inference-limits.js";
import { HttpError } from "../http/index.js";

/**
 * Counts the requests inside: as many as there are slots are generated, some wait, and who comes then is told
 * to come back. Leaving is safe to call twice.
 */
export class Admission {
  readonly #capacity: number;
  #inside = 0;
  #closed = false;

  constructor(slots: number, waiting: number = inferenceLimits.waiting) {
    this.#capacity = slots + waiting;
  }

  /** @throws HttpError 503 with Retry-After when all places are taken or the server is ending */
  enter(): () => void {
    if (this.#closed) throw busy("The server is ending.", 5);
    if (this.#inside >= this.#capacity) {
      throw busy(`The server is busy: ${this.#inside} requests are running or waiting already.`, 1);
    }
    this.#inside++;
    let left = false;
    return () => {
      if (!left) this.#inside--;
      left = true;
    };
  }

  /** Requests that are running or waiting. */
  get inside(): number {
    return this.#inside;
  }

  /** From now on nobody enters. */
  close(): void {
    this.#closed = true;
  }
}

function busy(sentence: string, retryAfterSeconds: number): HttpError {
  return new HttpError(503, sentence, {
    code: "overloaded",
    headers: { "Retry-After": String(retryAfterSeconds) },
  });
}
