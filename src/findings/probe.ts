/** A held-out example: its class, and the probe's probability of class 1. */
export interface Scored {
  label: 0 | 1;
  score: number;
}

/**
 * The best layer of a probe: the largest AUROC, which needs no threshold, then the smallest Brier score, then the earliest
 * layer. `tie` describes how ties were broken; empty without ties.
 */
export function bestLayer<R extends { layer: number; auc: number; brier: number }>(
  reports: readonly R[],
): { best: R; tie: string } {
  const best = reports.reduce((best, one) =>
    one.auc > best.auc ||
    (one.auc === best.auc && (one.brier < best.brier || (one.brier === best.brier && one.layer < best.layer)))
      ? one
      : best,
  );
  const equal = reports.filter(({ auc }) => auc === best.auc);
  const earliest = equal.filter(({ brier }) => brier === best.brier).length > 1;
  const which = earliest ? "the earliest" : "the smallest Brier score";
  return { best, tie: equal.length > 1 ? `, ${which} of ${equal.length} tied layers` : "" };
}

/** Reports with per-token figures instead of per-text ones, for reports that have them. */
export function ofRows<T extends { by_row?: object | undefined }>(
  reports: readonly T[],
): Array<T & NonNullable<T["by_row"]>> {
  return reports.flatMap((report) =>
    report.by_row === undefined ? [] : [{ ...report, ...(report.by_row as NonNullable<T["by_row"]>) }],
  );
}

/** The held-out examples. */
export function heldOut<E extends { split: string }>({ scores }: { scores: readonly E[] }): E[] {
  return scores.filter(({ split }) => split === "test");
}

/** The share of pairs in which the class 1 example scores higher; ties count as half. */
export function auroc(ones: readonly number[], zeros: readonly number[]): number {
  let above = 0;
  for (const one of ones) for (const zero of zeros) above += one > zero ? 1 : one === zero ? 0.5 : 0;
  return above / (ones.length * zeros.length);
}

/** Examples by the distance of their score from their label, largest first. */
export function mostWrong<E extends Scored>(examples: readonly E[]): (E & { error: number })[] {
  return examples
    .map((example) => ({ ...example, error: Math.abs(example.label - example.score) }))
    .toSorted((a, b) => b.error - a.error);
}

export interface RocPoint {
  falsePositiveRate: number;
  truePositiveRate: number;
  /** The lowest score that counts as positive; infinite at the start of the curve. */
  threshold: number;
}

/**
 * The receiver operating characteristic (Fawcett, 2006), from (0, 0) to (1, 1): one point per distinct score, so tied
 * scores make one diagonal step.
 */
export function roc(examples: readonly Scored[]): RocPoint[] {
  const sorted = examples.toSorted((a, b) => b.score - a.score);
  const positives = examples.filter(({ label }) => label === 1).length;
  const negatives = examples.length - positives;
  const points: RocPoint[] = [
    { falsePositiveRate: 0, truePositiveRate: 0, threshold: Number.POSITIVE_INFINITY },
  ];
  let [hits, alarms] = [0, 0];
  sorted.forEach(({ label, score }, index) => {
    if (label === 1) hits += 1;
    else alarms += 1;
    if (sorted[index + 1]?.score === score) return;
    points.push({
      falsePositiveRate: negatives === 0 ? 0 : alarms / negatives,
      truePositiveRate: positives === 0 ? 0 : hits / positives,
      threshold: score,
    });
  });
  return points;
}

export interface Bin {
  from: number;
  to: number;
  size: number;
  meanScore: number;
  /** Share of the bin's examples with label 1. */
  positiveShare: number;
}

/** Reliability: non-empty bins of equal width over [0, 1]. */
export function calibration(examples: readonly Scored[], bins = 10): Bin[] {
  return Array.from({ length: bins }, (_, index) => {
    const inside = examples.filter(({ score }) => binOf(score, bins) === index);
    const sum = (value: (example: Scored) => number) => inside.reduce((total, one) => total + value(one), 0);
    return {
      from: index / bins,
      to: (index + 1) / bins,
      size: inside.length,
      meanScore: sum(({ score }) => score) / inside.length,
      positiveShare: sum(({ label }) => label) / inside.length,
    };
  }).filter(({ size }) => size > 0);
}

/** The bin of a score among `bins` equal parts of [0, 1]; 1 belongs to the last. */
export function binOf(score: number, bins: number): number {
  return Math.min(bins - 1, Math.max(0, Math.floor(score * bins)));
}

/** Number of examples of each class per bin. */
export function classCounts(examples: readonly Scored[], bins: number): { zeros: number[]; ones: number[] } {
  const counts = { zeros: Array<number>(bins).fill(0), ones: Array<number>(bins).fill(0) };
  for (const { label, score } of examples) {
    const own = label === 1 ? counts.ones : counts.zeros;
    const bin = binOf(score, bins);
    own[bin] = (own[bin] as number) + 1;
  }
  return counts;
}
