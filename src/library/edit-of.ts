import type { LiveIntervention } from "../contracts/live.js";
import type { Edit, FeaturePlace, LivePositions } from "../native/edit.js";

/** An intervention as people write it, at one layer, its vector looked up. */
export type Written = Pick<LiveIntervention, "kind"> & {
  [field in "strength_unit" | "min" | "max"]?: LiveIntervention[field] | undefined;
} & { strength: number; positions?: LivePositions | undefined };

/**
 * What an intervention of strength s does to a row h, with v for its vector and u for the unit vector along it: scale
 * s*h; ablate (1-s)*h; patch (1-s)*h + s*v; steer h + s*u, s*v or s*|h|*u by the unit; project_out h - s*(h.u)*u; clamp
 * h + s*(clip(h.u, min, max) - h.u)*u; with a feature of activation f, clamp h + s*(clip(f, min, max) - f)*v.
 * @param feature whose decoder row the vector is
 */
export function editOf(
  written: Written,
  layer: number,
  vector: Float32Array | undefined,
  feature?: FeaturePlace,
): Edit {
  const { kind, strength, strength_unit: unit = "unit", positions = "all" } = written;
  // These two leave a vector aside: an affine edit that carries one adds it.
  if (kind === "scale") return { layer, positions, scale: strength };
  if (kind === "ablate") return { layer, positions, scale: 1 - strength };
  const common = { layer, positions, ...(vector && { vector }) };
  switch (kind) {
    case "patch":
      return { ...common, scale: 1 - strength, strength, unit: "vector" };
    case "steer":
      return { ...common, strength, unit };
    case "project_out":
      return { ...common, kind, strength };
    default:
      return {
        ...common,
        ...(feature === undefined ? { kind: "clamp", unit } : { kind: "hold", feature }),
        strength,
        ...(written.min !== undefined && { min: written.min }),
        ...(written.max !== undefined && { max: written.max }),
      };
  }
}
