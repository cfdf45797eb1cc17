import type { CompareConfig } from "../../contracts/index.js";
import { editOf } from "../../library/index.js";
import type { Edit, FeaturePlace, Positions } from "../../native/index.js";

/**
 * What an intervention of a strength does to the rows of a block, as the contract says it: on the last token unless told
 * otherwise.
 * @param vector the donor's state, or the direction at its full length; [hidden]
 * @param feature whose decoder row the vector is: what a clamp holds is its activation
 */
export function editFor(
  config: Pick<CompareConfig, "intervention" | "strength_unit" | "positions" | "min" | "max">,
  layer: number,
  strength: number,
  vector: Float32Array | undefined,
  feature?: FeaturePlace,
): Edit {
  const { intervention: kind, positions = "last", strength_unit, min, max } = config;
  if (kind === "swap") throw new RangeError("A swap is a plan of its own: see run-swap.ts.");
  return editOf(
    { kind, positions: positions as Positions, strength, strength_unit, min, max },
    layer,
    vector,
    feature,
  );
}

/**
 * The same as a plan: one edit at the point that is changed, of its heads together, so that what it reports is theirs together.
 * @param rest the vector of heads is one after another, theirs alone
 */
export function editsFor(
  config: Parameters<typeof editFor>[0] & Pick<CompareConfig, "point" | "heads">,
  ...rest: [layer: number, strength: number, vector: Float32Array | undefined, feature?: FeaturePlace]
): Edit[] {
  const edit = editFor(config, ...rest);
  const { point, heads } = config;
  if (point === undefined) return [edit];
  return [{ ...edit, point, ...(heads && { heads }) }];
}

/**
 * The mean of some rows less the mean of others.
 * @param rows [count, hidden], the `first` ones against the rest
 */
export function meanDifference(rows: Float32Array, first: number, hidden: number): Float32Array {
  const count = rows.length / hidden;
  const sum = new Float64Array(hidden);
  for (let row = 0; row < count; row++) {
    const weight = row < first ? 1 / first : -1 / (count - first);
    for (let i = 0; i < hidden; i++)
      sum[i] = (sum[i] as number) + weight * (rows[row * hidden + i] as number);
  }
  return Float32Array.from(sum);
}
