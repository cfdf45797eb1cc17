import type { CompareConfig } from "../../contracts/index.js";
import type { Edit } from "../../native/index.js";

/** Shortest difference that still counts as a direction: below it, dividing by the length would make noise. */
const normFloor = 1e-8;

/** The unit vector from the negative text's state to the positive one's, both [hidden]. */
export function steeringDirection(positive: Float32Array, negative: Float32Array): Float32Array {
  const difference = positive.map((value, index) => value - (negative[index] as number));
  const norm = Math.max(Math.hypot(...difference), normFloor);
  return difference.map((value) => value / norm);
}

/**
 * What an intervention of a strength does at a layer: scale s*h; ablate (1-s)*h; patch (1-s)*h + s*donor; steer
 * h + s*direction.
 * @param vector the donor's state, or the steering direction; [hidden]
 */
export function editFor(
  intervention: CompareConfig["intervention"],
  layer: number,
  strength: number,
  vector: Float32Array | undefined,
): Edit {
  switch (intervention) {
    case "scale":
      return { layer, scale: strength };
    case "ablate":
      return { layer, scale: 1 - strength };
    case "patch":
      return { layer, scale: 1 - strength, strength, ...(vector && { vector }) };
    case "steer":
      return { layer, strength, ...(vector && { vector }) };
  }
}
