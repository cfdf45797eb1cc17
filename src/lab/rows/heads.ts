import { UserError } from "../../contracts/user-error.js";
import type { Context } from "../../native/index.js";

/**
 * The heads of some blocks: the requested ones, or all.
 * @throws UserError if a block has no heads or lacks requested ones, or if all are requested and the numbers of heads
 * differ
 */
export function headsOf(
  { points }: Pick<Context, "points">,
  layers: readonly number[],
  asked?: readonly number[],
): number[] {
  const counts = layers.map((layer) => {
    const count = points.head_out.heads[points.head_out.layers.indexOf(layer)];
    if (count === undefined) throw new UserError(`Block ${layer} has no attention heads.`);
    checkHeads("heads", asked, layer, count);
    return count;
  });
  if (asked !== undefined) return [...asked];
  const [first = 0] = counts;
  const other = counts.findIndex((count) => count !== first);
  if (other !== -1) {
    throw new UserError(
      `Block ${layers[0]} has ${first} heads and block ${layers[other]} ${counts[other]}: specify heads that all of them have, or other layers.`,
    );
  }
  return Array.from({ length: first }, (_, head) => head);
}

/** @throws UserError if a block lacks heads requested in `field` */
export function checkHeads(field: string, asked: readonly number[] = [], layer: number, count: number): void {
  const missing = asked.filter((head) => head >= count);
  if (missing.length === 0) return;
  throw new UserError(
    `${field}: ${missing.join(", ")} ${missing.length === 1 ? "does" : "do"} not exist; block ${layer} has ${count} heads, 0 to ${count - 1}.`,
  );
}

/** Width of one head in a block's head_out. */
export function headSize({ points }: Pick<Context, "points">, layer: number): number {
  const at = points.head_out.layers.indexOf(layer);
  return (points.head_out.widths[at] as number) / (points.head_out.heads[at] as number);
}
