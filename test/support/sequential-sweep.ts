import type { Context, Edit, SweepRow } from "../../src/native/index.js";

/** Softmax probability of one token. */
export function probabilityOf(logits: Float32Array, token: number): number {
  const highest = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - highest), 0);
  return Math.exp((logits[token] ?? Number.NaN) - highest) / sum;
}

/** Index of the highest logit, the first of equals. */
export function argmax(logits: Float32Array): number {
  return logits.reduce(
    (best, logit, i) => (logit > (logits[best] ?? Number.NEGATIVE_INFINITY) ? i : best),
    0,
  );
}

/**
 * The plain way to run one prompt under edits of one layer: one sequence, one token at a time, the edits on the last
 * token's row of every pass. What Context.sweep() computes in batches must agree with this.
 */
export async function sequentialSweep(
  context: Context,
  prompt: Int32Array,
  layer: number,
  edits: readonly Edit[],
  target: number,
  maxTokens: number,
): Promise<Omit<SweepRow, "finite" | "effects"> & { logits: Float32Array[] }> {
  await context.reset();
  const continuation: number[] = [];
  const logits: Float32Array[] = [];
  let tokens = prompt;
  for (let step = 0; step < Math.max(1, maxTokens); step++) {
    const result = await context.advance({
      tokens,
      layers: [layer],
      rows: "last",
      keepStates: false,
      logits: true,
      edits,
    });
    if (result.logits === undefined) throw new Error("no logits");
    logits.push(result.logits);
    continuation.push(argmax(result.logits));
    tokens = Int32Array.of(continuation.at(-1) ?? 0);
  }
  return {
    probability: probabilityOf(logits[0] ?? new Float32Array(), target),
    continuation: Int32Array.from(continuation.slice(0, maxTokens)),
    logits,
  };
}
