/**
 * Finds the first range of tokens that begins after its end. Ends that count from different sides can only be compared
 * once the prompt has been read.
 */
export function reversedRange(
  ranges: readonly (readonly [first: number, last: number])[],
): { index: number; sentence: string } | null {
  const index = ranges.findIndex(([first, last]) => first < 0 === last < 0 && first > last);
  if (index === -1) return null;
  const [first, last] = ranges[index] as readonly [number, number];
  return { index, sentence: `must not begin after its end, got ${first} and ${last}.` };
}

/** Whether two bounds leave nothing between them; one alone bounds one side. */
export function reversedBounds(low: number | undefined, high: number | undefined): boolean {
  return low !== undefined && high !== undefined && low > high;
}
