/**
 * Values computed from public data, kept while that data has the same number. The number is read from the database
 * before the data is, so a change made by any process is seen by the next request.
 */
export class Kept<T> {
  readonly #most: number;
  #number = -1;
  readonly #values = new Map<string, Promise<T>>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether there is a value, or one is being computed. */
  has(number: number, key: string): boolean {
    return number === this.#number && this.#values.has(key);
  }

  /** Lets a value go that is not worth its room. */
  forget(key: string): void {
    this.#values.delete(key);
  }

  get(number: number, key: string, compute: () => Promise<T>): Promise<T> {
    // A request that saw an older state than the kept one computes for itself.
    if (number < this.#number) return compute();
    if (number > this.#number) {
      this.#values.clear();
      this.#number = number;
    }
    const kept = this.#values.get(key);
    if (kept !== undefined) return kept;
    const value = compute();
    this.#values.set(key, value);
    value.catch(() => {
      if (this.#values.get(key) === value) this.#values.delete(key);
    });
    if (this.#values.size > this.#most) this.#values.delete(this.#values.keys().next().value as string);
    return value;
  }
}
