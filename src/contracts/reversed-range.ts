/**
 * Finds the first token range that starts after its end. Ends counted from different sides can only be compared once
 * the prompt's length is known.
 */
export function reversedRange(
  ranges: readonly (readonly [first: number, last: number])[],
): { index: number; sentence: string } | null {
  const index = ranges.findIndex(([first, last]) => first < 0 === last < 0 && first > last);
  if (index === -1) return null;
  const [first, last] = ranges[index] as readonly [number, number];
  return { index, sentence: `must not start after its end, got ${first} and ${last}.` };
}

/** Whether a lower bound exceeds an upper bound; either may be absent. */
export function reversedBounds(low: number | undefined, high: number | undefined): boolean {
  return low !== undefined && high !== undefined && low > high;
}
