/** A held-out example: its class, and the probability that a probe gives to class 1. */
export interface Scored {
  label: 0 | 1;
  score: number;
}

/**
 * The layer that a probe's pictures name: the largest AUROC, which knows no threshold; among equal ones the smallest
 * Brier score, then the earliest.
 */
export function bestLayer<R extends { layer: number; auc: number; brier: number }>(reports: readonly R[]): R {
  return reports.reduce((best, one) =>
    one.auc > best.auc ||
    (one.auc === best.auc && (one.brier < best.brier || (one.brier === best.brier && one.layer < best.layer)))
      ? one
      : best,
  );
}

/**
 * The receiver operating characteristic: false against true positive rate, from (0, 0) to (1, 1). Examples with
 * equal scores make one step, so that their order does not matter.
 */
export function rocCurve(examples: readonly Scored[]): Array<[x: number, y: number]> {
  const positives = examples.filter(({ label }) => label === 1).length;
  const negatives = examples.length - positives;
  const sorted = [...examples].sort((a, b) => b.score - a.score);
  const points: Array<[number, number]> = [[0, 0]];
  let [hits, alarms] = [0, 0];
  sorted.forEach(({ label, score }, index) => {
    if (label === 1) hits++;
    else alarms++;
    if (sorted[index + 1]?.score === score) return;
    points.push([negatives === 0 ? 0 : alarms / negatives, positives === 0 ? 0 : hits / positives]);
  });
  return points;
}

/** Mean score against the share of class 1, for each of `bins` equal ranges of scores that holds examples. */
export function calibration(
  examples: readonly Scored[],
  bins = 10,
): Array<{ score: number; share: number; count: number }> {
  const binOf = (score: number) => Math.min(bins - 1, Math.floor(score * bins));
  return Array.from({ length: bins }, (_, bin) => examples.filter(({ score }) => binOf(score) === bin))
    .filter(({ length }) => length > 0)
    .map((members) => ({
      score: members.reduce((sum, { score }) => sum + score, 0) / members.length,
      share: members.filter(({ label }) => label === 1).length / members.length,
      count: members.length,
    }));
}
