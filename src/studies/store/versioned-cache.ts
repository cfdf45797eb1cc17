/**
 * Caches values computed from public data until the data's version changes. The version is read from the database before
 * the data, so that the next request sees changes made by any process.
 */
export class VersionedCache<T> {
  #version = -1;
  readonly #values = new Map<string, Promise<T>>();

  constructor(private readonly most: number) {}

  /** Whether a value is cached or being computed. */
  has(version: number, key: string): boolean {
    return version === this.#version && this.#values.has(key);
  }

  /** Removes a value. */
  forget(key: string): void {
    this.#values.delete(key);
  }

  get(version: number, key: string, compute: () => Promise<T>): Promise<T> {
    // A request that read an older version does not use the cache.
    if (version < this.#version) return compute();
    if (version > this.#version) {
      this.#values.clear();
      this.#version = version;
    }
    const cached = this.#values.get(key);
    if (cached !== undefined) return cached;
    const value = compute();
    this.#values.set(key, value);
    value.catch(() => {
      if (this.#values.get(key) === value) this.#values.delete(key);
    });
    if (this.#values.size > this.most) this.#values.delete(this.#values.keys().next().value as string);
    return value;
  }
}
