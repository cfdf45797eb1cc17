/** The uncertainty of held-out figures: intervals by resampling, and the spread of controls. */

/** The central 95 % of many values. */
export interface Interval {
  low: number;
  high: number;
}

export interface Spread extends Interval {
  mean: number;
  std: number;
}

/** A held-out example: its class, and a probe's probability of class 1. */
interface Scored {
  label: 0 | 1;
  score: number;
}

/** Interpolates linearly between the two nearest sorted values. */
function quantile(sorted: ArrayLike<number>, share: number): number {
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)] as number;
  return below + (place % 1) * ((sorted[Math.ceil(place)] as number) - below);
}

function middle(values: Float64Array): Interval {
  const sorted = values.toSorted();
  return { low: quantile(sorted, 0.025), high: quantile(sorted, 0.975) };
}

/** Mean, standard deviation (n - 1) and central 95 % of permutation results. */
export function spreadOf(values: Float64Array): Spread {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, std: Math.sqrt(squares / (values.length - 1)), ...middle(values) };
}

/**
 * The share of permutations at least as good as the observed value, which counts as one of them (Phipson & Smyth,
 * 2010): at least 1 / (N + 1) for N permutations.
 */
export function atLeastAsGood(values: Float64Array, observed: number): number {
  const good = values.reduce((sum, value) => sum + (value >= observed ? 1 : 0), 0);
  return (good + 1) / (values.length + 1);
}

/** Uniform in [0, 1), reproducible by seed: a Weyl sequence through two rounds of mixing. */
function uniformFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** Draws as many things as there are with replacement, and counts each one's draws. @returns `times` */
function draw<T extends Uint16Array | Uint32Array>(times: T, uniform: () => number): T {
  for (let i = 0; i < times.length; i++) {
    const index = Math.floor(uniform() * times.length);
    times[index] = (times[index] as number) + 1;
  }
  return times;
}

/** A figure and its 95 % percentile bootstrap interval. */
export interface Measured extends Interval {
  value: number;
}

/**
 * Figures over `count` things, each counted `times`, with 95 % percentile bootstrap intervals (Efron & Tibshirani,
 * 1993): resampled with replacement, using the same draws for all figures, so that differences are paired. Draws for
 * which a figure is NaN are redrawn, with at most `most` draws in total: by default twice as many as resamples.
 * @param options.centred Resamples have fewer different things, so that a figure such as a share of features that never occur is
 * larger in most of them; the estimated bias, their mean less the figure, is subtracted from both ends.
 * @param figures of things each counted `times[i]` times
 */
export function bootstrap(
  count: number,
  {
    resamples,
    seed,
    most = 2 * resamples,
    centred = false,
  }: { resamples: number; seed: number; most?: number; centred?: boolean },
  figures: (times: Uint32Array) => number[],
): Measured[] {
  const uniform = uniformFrom(seed);
  const times = new Uint32Array(count).fill(1);
  const observed = figures(times);
  const drawn = observed.map(() => [] as number[]);
  for (let round = 0, done = 0; done < resamples && round < most; round++) {
    draw(times.fill(0), uniform);
    const found = figures(times);
    if (found.some(Number.isNaN)) continue;
    for (const [i, value] of found.entries()) drawn[i]?.push(value);
    done++;
  }
  return observed.map((value, i) => {
    const found = Float64Array.from(drawn[i] as number[]);
    const { low, high } = middle(found);
    const bias = found.reduce((sum, each) => sum + each, 0) / found.length - value;
    return centred
      ? { value, low: Math.min(value, low - bias), high: Math.max(value, high - bias) }
      : { value, low, high };
  });
}

/**
 * The share of (1, 0) pairs ranked right, ties half, by how many times each thing counts; NaN without both classes.
 */
export function aurocOf(
  labels: readonly (0 | 1)[],
  scores: readonly number[],
): (times: Uint32Array) => number {
  const order = [...scores.keys()].sort((a, b) => (scores[a] as number) - (scores[b] as number));
  const sorted = order.map((i) => ({ label: labels[i] as 0 | 1, score: scores[i] as number }));
  return (times) =>
    figuresOf(
      sorted,
      Uint32Array.from(order, (i) => times[i] as number),
    ).auc;
}

/**
 * 95 % percentile bootstrap intervals (Efron & Tibshirani, 1993) of accuracy and AUROC: examples are resampled with
 * replacement; draws without both classes, which have no AUROC, are redrawn. Examples of one cluster are drawn
 * together (the cluster bootstrap; Davison & Hinkley, 1997).
 * @param options.of each example's cluster; by default every example is its own
 */
export function bootstrapIntervals(
  examples: readonly Scored[],
  { resamples, seed, of }: { resamples: number; seed: number; of?: readonly number[] },
): { accuracy: Interval; auc: Interval } {
  const order = [...examples.keys()].sort((a, b) => (examples[a]?.score ?? 0) - (examples[b]?.score ?? 0));
  const sorted = order.map((index) => examples[index] as Scored);
  const clusters = new Map([...new Set(of)].map((name, number) => [name, number]));
  const clusterOf = order.map((index, at) =>
    of === undefined ? at : (clusters.get(of[index] as number) as number),
  );
  const times = new Uint32Array(sorted.length);
  const count = of === undefined ? sorted.length : clusters.size;
  // With both classes present at least every second draw has both: the limit only ends data of one class.
  const [accuracy, auc] = bootstrap(count, { resamples, seed, most: 64 * resamples }, (drawn) => {
    for (const [at, cluster] of clusterOf.entries()) times[at] = drawn[cluster] as number;
    const figures = figuresOf(sorted, times);
    return [figures.accuracy, figures.auc];
  }) as [Measured, Measured];
  const intervalOf = ({ low, high }: Measured): Interval => ({ low, high });
  return { accuracy: intervalOf(accuracy), auc: intervalOf(auc) };
}

/**
 * How often each of `count` pairs is drawn in each resample, [resamples, count]: the same draws for all figures of
 * the pairs.
 */
export function pairDraws(
  count: number,
  { resamples, seed }: { resamples: number; seed: number },
): Uint16Array[] {
  const uniform = uniformFrom(seed);
  return Array.from({ length: resamples }, () => draw(new Uint16Array(count), uniform));
}

/**
 * 95 % percentile bootstrap interval (Efron & Tibshirani, 1993) of the mean of `values` over the pairs, or of its
 * share of the mean of `whole`; draws in which that mean is nearly zero are skipped.
 * @returns undefined if every draw is skipped
 */
export function drawnInterval(
  draws: readonly Uint16Array[],
  values: ArrayLike<number>,
  whole?: { values: ArrayLike<number>; least: number },
): Interval | undefined {
  const found = new Float64Array(draws.length);
  let count = 0;
  for (const times of draws) {
    let [sum, all] = [0, 0];
    for (let pair = 0; pair < times.length; pair++) {
      const often = times[pair] as number;
      sum += often * (values[pair] as number);
      if (whole !== undefined) all += often * (whole.values[pair] as number);
    }
    if (whole === undefined) all = times.length;
    else if (Math.abs(all / times.length) < whole.least) continue;
    found[count++] = sum / all;
  }
  return count === 0 ? undefined : middle(found.subarray(0, count));
}

/** Accuracy, and the share of (1, 0) pairs ranked right, ties half, with each example counted `times`. */
function figuresOf(sorted: readonly Scored[], times: Uint32Array): { accuracy: number; auc: number } {
  let [right, ones, zeros, pairs] = [0, 0, 0, 0];
  for (let from = 0; from < sorted.length; ) {
    const { score } = sorted[from] as Scored;
    let [tiedOnes, tiedZeros, to] = [0, 0, from];
    for (; to < sorted.length && sorted[to]?.score === score; to++) {
      const { label } = sorted[to] as Scored;
      const count = times[to] as number;
      if (label === 1) tiedOnes += count;
      else tiedZeros += count;
      if (score > 0.5 === (label === 1)) right += count;
    }
    pairs += tiedOnes * (zeros + tiedZeros / 2);
    ones += tiedOnes;
    zeros += tiedZeros;
    from = to;
  }
  return { accuracy: right / (ones + zeros), auc: pairs / (ones * zeros) };
}
