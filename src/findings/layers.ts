/**
 * At most `count` of the items in order, evenly: each stands for an equal part of them and is the last of its part, so that
 * the last of all is always among them, whatever their number. Blocks are chosen so where a request names none: what the
 * last block puts out is what the model says, and what the first puts out is hardly more than its token's embedding.
 */
export function spread<T>(items: readonly T[], count: number): T[] {
  if (items.length <= count) return [...items];
  const step = items.length / count;
  return Array.from({ length: count }, (_, index) => items[Math.round((index + 1) * step) - 1] as T);
}

/** The same, of the blocks of a model with so many. */
export function spreadLayers(blocks: number, count: number): number[] {
  return spread([...Array(blocks).keys()], count);
}
