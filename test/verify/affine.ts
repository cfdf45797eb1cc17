import type { interventions } from "../../src/contracts/submission.js";

export type Intervention = (typeof interventions)[number];

/** h' = scale * h + offset for each of the contract's interventions, as the product computes it. */
export function affine(
  kind: Intervention,
  s: number,
  vector: Float32Array,
): { scale: number; offset?: Float32Array } {
  if (kind === "scale") return { scale: s };
  if (kind === "ablate") return { scale: 1 - s };
  if (kind === "patch") return { scale: 1 - s, offset: vector.map((value) => s * value) };
  const length = Math.hypot(...vector);
  return { scale: 1, offset: vector.map((value) => (s * value) / length) };
}
