/**
 * Answers computed from public data, kept while nothing public changes. The number of the public state comes with
 * every token check, so a change made by any process is seen by the next request.
 */
export class ListCache {
  readonly #most: number;
  #generation = -1;
  readonly #answers = new Map<string, Promise<Buffer>>();

  constructor(most = 400) {
    this.#most = most;
  }

  get(generation: number, key: string, compute: () => Promise<Buffer>): Promise<Buffer> {
    // A request that saw an older state than the kept one computes for itself.
    if (generation < this.#generation) return compute();
    if (generation > this.#generation) {
      this.#answers.clear();
      this.#generation = generation;
    }
    const kept = this.#answers.get(key);
    if (kept !== undefined) return kept;
    const answer = compute();
    this.#answers.set(key, answer);
    answer.catch(() => {
      if (this.#answers.get(key) === answer) this.#answers.delete(key);
    });
    if (this.#answers.size > this.#most) this.#answers.delete(this.#answers.keys().next().value as string);
    return answer;
  }
}
