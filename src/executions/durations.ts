/**
 * Counts of durations in buckets whose bounds grow by a constant factor: percentiles are accurate to about 5 %, in
 * constant memory.
 */
export class Histogram {
  /** Smallest bound in seconds; eight buckets per doubling cover up to about 40 minutes. */
  static readonly #least = 1e-5;
  static readonly #perDoubling = 8;
  static readonly #size = 224;

  readonly #counts = new Float64Array(Histogram.#size);
  #count = 0;
  #sum = 0;

  get count(): number {
    return this.#count;
  }

  /** Sum of all durations, in seconds. */
  get sum(): number {
    return this.#sum;
  }

  /** @param seconds a duration; negative ones count as zero */
  add(seconds: number, times = 1): void {
    const steps = Math.log2(Math.max(seconds, Histogram.#least) / Histogram.#least) * Histogram.#perDoubling;
    const bucket = Math.min(Histogram.#size - 1, Math.ceil(steps));
    this.#counts[bucket] = (this.#counts[bucket] as number) + times;
    this.#count += times;
    this.#sum += Math.max(0, seconds) * times;
  }

  /** The duration in seconds below which a share `fraction` of all durations lies; null if empty. */
  percentile(fraction: number): number | null {
    if (this.#count === 0) return null;
    let rest = fraction * this.#count;
    const bucket = this.#counts.findIndex((count) => {
      rest -= count;
      return rest <= 0;
    });
    return bound(bucket - 0.5);
  }

  /** Number of durations of at most `seconds`, to the precision of a bucket. */
  atMost(seconds: number): number {
    let total = 0;
    for (let bucket = 0; bucket < Histogram.#size && bound(bucket) <= seconds * 1.0001; bucket++) {
      total += this.#counts[bucket] as number;
    }
    return total;
  }
}

function bound(bucket: number): number {
  return 1e-5 * 2 ** (bucket / 8);
}

/** Median, 95th and 99th percentile in milliseconds; null if empty. */
export function percentiles(histogram: Histogram) {
  const milliseconds = (fraction: number) => {
    const seconds = histogram.percentile(fraction);
    return seconds === null ? null : Math.round(seconds * 1e5) / 100;
  };
  return { p50: milliseconds(0.5), p95: milliseconds(0.95), p99: milliseconds(0.99) };
}
