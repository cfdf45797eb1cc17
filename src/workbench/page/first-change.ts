/** The change that a conversation is offered first: one that changes what is said, and leaves it language. */
export interface FirstChange {
  kind: "ablate";
  layer: number;
  strength: number;
  positions: "prompt";
}

/**
 * What the first block makes of the question is taken away in part, and of the answer's own tokens nothing: the model hears
 * less of what it is asked, and speaks as before. `npm run verify:first-change` measures it.
 * @param width of the served model's rows; the embedded model's are so narrow that half of them changes nothing
 */
export function firstChange(width: number | null): FirstChange {
  return {
    kind: "ablate",
    layer: 0,
    strength: width !== null && width <= 128 ? 0.9 : 0.5,
    positions: "prompt",
  };
}
