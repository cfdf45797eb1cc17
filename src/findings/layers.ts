/**
 * At most `count` evenly spaced items: the last of each equal part, so the last item is always included. Requests without
 * layers use this: the last block's output determines the answer, and the first block's is little more than the token
 * embedding.
 */
export function spread<T>(items: readonly T[], count: number): T[] {
  if (items.length <= count) return [...items];
  const step = items.length / count;
  return Array.from({ length: count }, (_, index) => items[Math.round((index + 1) * step) - 1] as T);
}

/** The same for the block indices of a model. */
export function spreadLayers(blocks: number, count: number): number[] {
  return spread([...Array(blocks).keys()], count);
}

/** Which of a model's layers were measured, as the beginning of a caption: `each layer` or `8 of 30 layers`. */
export function measuredLayers(layers: readonly number[], all: number | null | undefined): string {
  if (all === null || all === undefined) return layers.length === 1 ? "1 layer" : `${layers.length} layers`;
  return layers.length >= all ? "each layer" : `${layers.length} of ${all} layers`;
}
