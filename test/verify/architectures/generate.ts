import type { Context, Edit, Model } from "../../../src/native/index.js";
import { softmax } from "./arithmetic.js";

/** A greedy text and how sure each of its tokens was. */
export interface Alone {
  tokens: number[];
  /** Between the most probable token and the next, of each step; one more where the text ended. */
  margins: number[];
  /** Probabilities after the prompt. */
  first: Float64Array;
}

/**
 * Greedy generation, one pass a token, with each pass's rows edited; a token that ends a text ends it and is left out.
 */
export async function generate(
  model: Model,
  context: Context,
  prompt: Int32Array,
  edit: Edit,
  steps: number,
): Promise<Alone> {
  const tokens: number[] = [];
  const margins: number[] = [];
  let first: Float64Array | undefined;
  let next = prompt;
  await context.reset();
  while (tokens.length < steps) {
    const { logits } = await context.advance({
      tokens: next,
      layers: [edit.layer],
      rows: "last",
      edits: [edit],
      logits: true,
    });
    const probabilities = softmax(logits!);
    first ??= probabilities;
    const order = Array.from(probabilities.keys()).sort((a, b) => probabilities[b]! - probabilities[a]!);
    margins.push(probabilities[order[0]!]! - probabilities[order[1]!]!);
    if (model.info.endOfGeneration.includes(order[0]!)) break;
    tokens.push(order[0]!);
    next = Int32Array.of(order[0]!);
  }
  return { tokens, margins, first: first! };
}
