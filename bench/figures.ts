/** One figure of a benchmark: the median of its rounds, and whether it reaches its goal. */
export interface Row {
  name: string;
  /** Median over the rounds. */
  value: number;
  /** Smallest and largest round. */
  spread: [number, number];
  unit: string;
  /** What `value` has to reach, e.g. ">= 1.5"; absent for information. */
  goal?: string;
  ok: boolean;
  /** Set where it was measured in fewer rounds than its comparison. */
  rounds?: number;
}

/** The median of the rounds as a row; `least` and `most` are its goal. */
export function row(
  name: string,
  values: readonly number[],
  unit: string,
  goal: { least?: number; most?: number } = {},
): Row {
  const value = median(values);
  const spread: [number, number] = [Math.min(...values), Math.max(...values)];
  const { least, most } = goal;
  if (least !== undefined) return { name, value, spread, unit, goal: `>= ${least}`, ok: value >= least };
  if (most !== undefined) return { name, value, spread, unit, goal: `<= ${most}`, ok: value <= most };
  return { name, value, spread, unit, ok: true };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/** Of the median, from the median distance to it, as if the rounds were normal. */
function standardError(values: readonly number[]): number {
  const middle = median(values);
  const deviation = 1.4826 * median(values.map((value) => Math.abs(value - middle)));
  return (1.2533 * deviation) / Math.sqrt(values.length);
}

/** Whether more rounds would hardly change on which side of its goal a median is: twice its standard error away. */
export function isClear(values: readonly number[], goal: number): boolean {
  return Math.abs(median(values) - goal) > 2 * standardError(values);
}

/** First and third quartile: with pairs this short, the extremes show the machine, not the capture. */
export function quartiles(values: readonly number[]): [number, number] {
  return [percentile(values, 0.25), percentile(values, 0.75)];
}

/** The value below which that share of all lies: the next lower of those that were measured. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] as number;
}
