import type { CompareConfig } from "../../contracts/index.js";

/** Shortest difference that still counts as a direction: below it, dividing by the length would make noise. */
const normFloor = 1e-8;

/** h' = scale * h + offset on the last token's row of a block output. */
export interface Edit {
  scale: number;
  /** [hidden] */
  offset?: Float32Array;
}

/** The unit vector from the negative text's state to the positive one's, both [hidden]. */
export function steeringDirection(positive: Float32Array, negative: Float32Array): Float32Array {
  const difference = positive.map((value, index) => value - (negative[index] as number));
  const norm = Math.max(Math.hypot(...difference), normFloor);
  return difference.map((value) => value / norm);
}

/**
 * What an intervention of a strength does, as one affine form: scale s*h; ablate (1-s)*h; patch
 * (1-s)*h + s*donor; steer h + s*direction.
 * @param vector the donor's state, or the steering direction; [hidden]
 */
export function editFor(
  intervention: CompareConfig["intervention"],
  strength: number,
  vector: Float32Array | null,
): Edit {
  const offset = () => (vector as Float32Array).map((value) => strength * value);
  switch (intervention) {
    case "scale":
      return { scale: strength };
    case "ablate":
      return { scale: 1 - strength };
    case "patch":
      return { scale: 1 - strength, offset: offset() };
    case "steer":
      return { scale: 1, offset: offset() };
  }
}
