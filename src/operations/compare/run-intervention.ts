import type { CompareConfig } from "../../contracts/index.js";
import { editOf } from "../../library/index.js";
import type { Edit, FeaturePlace, Positions } from "../../native/index.js";

/**
 * The edit of a block at one strength, as the contract defines it. Default position: the last token.
 * @param vector the donor's activation, or the direction at its full length; [hidden]
 * @param feature the feature whose decoder row `vector` is: a clamp bounds its activation
 */
export function editFor(
  config: Pick<CompareConfig, "intervention" | "strength_unit" | "positions" | "min" | "max">,
  layer: number,
  strength: number,
  vector: Float32Array | undefined,
  feature?: FeaturePlace,
): Edit {
  const { intervention: kind, positions = "last", strength_unit, min, max } = config;
  if (kind === "swap") throw new RangeError("A swap is not a single edit: see run-swap.ts.");
  return editOf(
    { kind, positions: positions as Positions, strength, strength_unit, min, max },
    layer,
    vector,
    feature,
  );
}

/**
 * The same as a plan: one edit at the chosen point, covering all chosen heads, so that its effect is reported for them together.
 * @param rest for heads, the vector concatenates the values of the chosen heads only
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
 * The mean of the first rows minus the mean of the remaining ones.
 * @param rows [count, hidden]
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
