/** Consecutive weights of a row with a common scale. */
export const nf4Group = 64;

/** The values of the 16 codes; Dettmers et al., QLoRA (2023), appendix E. */
const values = Float32Array.of(
  ...[-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635],
  ...[-0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725],
  ...[0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941],
  ...[0.7229568362236023, 1],
);
/** A code begins above the middle between its value and the one before. */
const bounds = values.subarray(1).map((value, at) => Math.fround(value + (values[at] as number)) / 2);

/**
 * Rounds a row's weights in place to 4-bit NormalFloat: each group's weights, divided by its greatest magnitude, become the
 * nearest of 16 values, which lie at quantiles of a normal distribution. In float32, as bitsandbytes computes it.
 */
export function roundToNf4(row: Float32Array): void {
  for (let from = 0; from < row.length; from += nf4Group) {
    const part = row.subarray(from, from + nf4Group);
    let most = 0;
    for (const weight of part) most = Math.max(most, Math.abs(weight));
    if (most === 0) continue;
    const inverse = Math.fround(1 / most);
    for (let i = 0; i < part.length; i++) {
      part[i] = (values[codeOf(Math.fround((part[i] as number) * inverse))] as number) * most;
    }
  }
}

/** The number of bounds below a number, of which half remain with each step. */
function codeOf(share: number): number {
  let code = 0;
  for (let step = 8; step >= 1; step /= 2) {
    if ((bounds[code + step - 1] as number) < share) code += step;
  }
  return code;
}
