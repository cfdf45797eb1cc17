import type { Printed } from "./expected.js";

/** Printed values have four decimals: half of the last one comes on top of everything else. */
const printedDigit = 0.5e-4;

/**
 * How far values are from printed ones, relative to their size: the larger of two distances, of the single values that
 * were printed (L2), and of the sum of all, as a share of the sum of absolute values.
 * @param values float32 [tokens, width]; if one side has fewer rows, they are the last ones
 */
export function distance(values: Float32Array, { rows, width, values: some, sum }: Printed): number {
  const common = Math.min(values.length / width, rows);
  const mine = values.subarray(values.length - common * width);
  let [apart, size] = [0, 0];
  for (const [row, column, value] of some) {
    const at = (row - (rows - common)) * width + column;
    if (at < 0) continue;
    apart += Math.max(0, Math.abs((mine[at] as number) - value) - printedDigit) ** 2;
    size += value ** 2;
  }
  const single = Math.sqrt(apart / size);
  const whole = rows === common ? Math.abs(sumOf(mine) - sum) / absoluteSum(mine) : 0;
  const most = Math.max(single, whole);
  return Number.isNaN(most) ? Number.POSITIVE_INFINITY : most;
}

const sumOf = (values: Float32Array) => values.reduce((sum, value) => sum + value, 0);
const absoluteSum = (values: Float32Array) => values.reduce((sum, value) => sum + Math.abs(value), 0);

/** The differences of the printed logits from the first one: what log-probabilities determine. */
export function logitDifferences({ values }: Printed): Map<number, number> {
  const [first] = values as [Printed["values"][0], ...Printed["values"]];
  return new Map(values.map(([, token, value]) => [token, value - first[2]]));
}
