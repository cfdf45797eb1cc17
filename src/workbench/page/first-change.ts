/** The first intervention offered in a conversation: it changes the answer and leaves it fluent. */
export interface FirstChange {
  kind: "ablate";
  layer: number;
  strength: number;
  positions: "prompt";
}

/**
 * Partly ablates the first block at the prompt only: the model gets less of the question, and the answer's tokens are not
 * edited. `npm run verify:first-change` measures it.
 * @param width hidden size of the served model; the embedded model is so narrow that a strength of 0.5 has no effect
 */
export function firstChange(width: number | null): FirstChange {
  return {
    kind: "ablate",
    layer: 0,
    strength: width !== null && width <= 128 ? 0.9 : 0.5,
    positions: "prompt",
  };
}
