import { NativeError } from "./error.js";

/**
 * Runs asynchronous operations one after another, and closes once: calls before close() finish first, later ones are
 * rejected. So native operations of one object do not occupy several threads that would wait for each other.
 */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(private readonly what: string) {}

  get closed(): boolean {
    return this.#closing !== undefined;
  }

  run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) {
      return Promise.reject(new NativeError("CLOSED", `The ${this.what} is closed.`));
    }
    const result = this.#tail.then(operation);
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /** Waits for accepted operations, then runs `release` once; every call gets the same promise. */
  close(release: () => Promise<void>): Promise<void> {
    this.#closing ??= this.#tail.then(release);
    return this.#closing;
  }
}
