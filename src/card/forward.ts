import type { ServingModel } from "../client/index.js";
import type { Arm } from "./arms.js";
import { divergence, logSoftmax } from "./measure.js";

/** The log-probabilities of a text's tokens and of every alternative, row by row. */
export interface ScoredText {
  tokens: Float32Array;
  /** One row per token: the distribution of the next one. */
  rows: Float64Array[];
}

/** A text's next-token distributions on the served model under an arm's edits. */
export async function scoreText(
  serving: ServingModel,
  text: string,
  arm: Pick<Arm, "edits">,
  signal: AbortSignal | undefined,
): Promise<ScoredText> {
  const request = { sequences: [text], edits: [...arm.edits], logits: "all" as const };
  const { tensors } = await serving.forward(request, { signal });
  const tokens = tensors.get("tokens")?.data as Float32Array;
  const logits = tensors.get("logits")?.data as Float32Array;
  const width = logits.length / tokens.length;
  const rows = Array.from(tokens, (_, row) => logSoftmax(logits.subarray(row * width, (row + 1) * width)));
  return { tokens, rows };
}

/**
 * The same for the ends of several sequences in one pass: only the distributions at their last tokens are computed, the
 * other rows are missing.
 * @param ends the number of tokens; every sequence has at least that many
 */
export async function scoreEnds(
  serving: ServingModel,
  sequences: readonly (readonly number[])[],
  ends: number,
  arm: Pick<Arm, "edits">,
  signal: AbortSignal | undefined,
): Promise<ScoredText[]> {
  const logits = Array.from({ length: ends }, (_, index) => index - ends);
  const request = { sequences: sequences.map((ids) => [...ids]), edits: [...arm.edits], logits };
  const { tensors } = await serving.forward(request, { signal });
  const found = tensors.get("logits")?.data as Float32Array;
  const width = found.length / (sequences.length * ends);
  return sequences.map((ids, sequence) => {
    const rows: Float64Array[] = [];
    for (let index = 0; index < ends; index++) {
      const at = (sequence * ends + index) * width;
      rows[ids.length - ends + index] = logSoftmax(found.subarray(at, at + width));
    }
    return { tokens: Float32Array.from(ids), rows };
  });
}

/** Mean negative log-probability of a text's tokens from the second on, in nats; and how many they are. */
export function crossEntropy({ tokens, rows }: ScoredText): { value: number; weight: number } {
  let sum = 0;
  for (let place = 1; place < tokens.length; place++) {
    sum -= (rows[place - 1] as Float64Array)[tokens[place] as number] as number;
  }
  return { value: sum / (tokens.length - 1), weight: tokens.length - 1 };
}

/** Mean KL(base ‖ edited) over the positions that predict a token of the text, in nats. */
export function meanDivergence(base: ScoredText, edited: ScoredText): number {
  const count = base.tokens.length - 1;
  let sum = 0;
  for (let row = 0; row < count; row++) {
    sum += divergence(base.rows[row] as Float64Array, edited.rows[row] as Float64Array);
  }
  return sum / count;
}

/** The number of tokens with which both begin. */
export function commonStart(tokens: ArrayLike<number>, others: ArrayLike<number>): number {
  let start = 0;
  while (start < others.length && tokens[start] === others[start]) start++;
  return start;
}

/**
 * Log-probability per token of a continuation, from the first token at which the whole text's tokens differ from the
 * context's, as evaluation harnesses do it.
 */
export function continuationScore(whole: ScoredText, contextTokens: Float32Array): number {
  const start = commonStart(whole.tokens, contextTokens);
  let sum = 0;
  for (let place = start; place < whole.tokens.length; place++) {
    sum += (whole.rows[place - 1] as Float64Array)[whole.tokens[place] as number] as number;
  }
  return sum / Math.max(1, whole.tokens.length - start);
}
