import type { LiveKind } from "../contracts/interventions.js";
import type { LiveIntervention } from "../contracts/live.js";
import type { Edit, FeaturePlace, LivePositions } from "../native/edit.js";

/** A user's intervention at one layer, its vector resolved. */
export type Written = { kind: LiveKind; strength: number; positions?: LivePositions | undefined } & {
  [field in "strength_unit" | "min" | "max" | "point" | "heads"]?: LiveIntervention[field] | undefined;
};

type Rest = Omit<Edit, "layer" | "positions">;

/** Each kind as a native edit; {@link interventionKinds} has the formulas. */
const edits: Record<
  LiveKind,
  (written: Written, along: Pick<Edit, "vector">, feature?: FeaturePlace) => Rest
> = {
  // These two drop a given vector, because an affine edit would add it.
  scale: ({ strength }) => ({ scale: strength }),
  ablate: ({ strength }) => ({ scale: 1 - strength }),
  patch: ({ strength }, along) => ({ ...along, scale: 1 - strength, strength, unit: "vector" }),
  steer: ({ strength, strength_unit: unit = "unit" }, along) => ({ ...along, strength, unit }),
  project_out: ({ strength }, along) => ({ ...along, kind: "project_out", strength }),
  clamp: ({ strength, strength_unit: unit = "unit", min, max }, along, feature) => ({
    ...along,
    ...(feature === undefined ? { kind: "clamp", unit } : { kind: "hold", feature }),
    strength,
    ...(min !== undefined && { min }),
    ...(max !== undefined && { max }),
  }),
};

/**
 * The native edit of an intervention.
 * @param feature the feature whose decoder vector it is, if any
 */
export function editOf(
  written: Written,
  layer: number,
  vector: Float32Array | undefined,
  feature?: FeaturePlace,
): Edit {
  const { kind, positions = "all", point, heads } = written;
  const where = { layer, positions, ...(point && { point }), ...(heads && { heads }) };
  return { ...where, ...edits[kind](written, vector === undefined ? {} : { vector }, feature) };
}
