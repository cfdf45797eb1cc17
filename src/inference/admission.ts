import { inferenceLimits } from "../contracts/inference-limits.js";
import { HttpError } from "../http/index.js";

/**
 * Limits concurrent requests: one per slot runs, some wait, and further ones are refused with Retry-After. Leaving is
 * idempotent.
 */
export class Admission {
  readonly #capacity: number;
  #inside = 0;
  #closed = false;

  constructor(slots: number, waiting: number = inferenceLimits.waiting) {
    this.#capacity = slots + waiting;
  }

  /** @throws HttpError 503 with Retry-After if the server is full or shutting down */
  enter(): () => void {
    if (this.#closed) throw busy("The server is shutting down.", 5);
    if (this.#inside >= this.#capacity) {
      throw busy(`The server is busy: ${this.#inside} requests are already running or waiting.`, 1);
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

  /** Refuses new requests from now on. */
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
