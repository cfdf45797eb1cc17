import type { Decomposition } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import type { AdvanceResult, Context, Model, Point } from "../../native/index.js";

/** The points whose contributions to the logit are computed. */
const parts = ["block_in", "attn_out", "ffn_out", "block_out"] as const satisfies Point[];

/** @throws UserError if a block's output is not known to be the sum of its input, attention and MLP */
export function checkDecomposable({ points }: Context): void {
  const missing = parts.map((point) => points[point]).find(({ supported }) => !supported);
  if (missing !== undefined) throw new UserError(missing.reason);
}

/**
 * Direct contributions of the embedding and of every block's attention and MLP to a token's logit after the last token,
 * with the final norm's scale frozen (direct logit attribution: Elhage et al. 2021). The residual stream after the last
 * block is the sum of all of them, so the contributions and the biases add up to the logit. This is a separate pass,
 * because it captures every block, at the last token only.
 * @param target a token id; null for the model's own answer
 */
export async function decompose(
  model: Model,
  context: Context,
  tokens: Int32Array,
  target: number | null,
  signal?: AbortSignal,
): Promise<Omit<Decomposition, "target_token">> {
  checkDecomposable(context);
  const { nLayer } = model.info;
  const layers = Array.from({ length: nLayer }, (_, layer) => layer);
  await context.reset();
  let found: AdvanceResult | undefined;
  for (let start = 0; start < tokens.length; start += context.nBatch) {
    const last = start + context.nBatch >= tokens.length;
    found = await context.advance({
      tokens: tokens.slice(start, start + context.nBatch),
      layers: last ? layers : [],
      points: parts,
      rows: "last",
      ...(last ? { logits: true, nextTopK: 1 } : {}),
      ...(signal === undefined ? {} : { signal }),
    });
  }
  const captured = found as AdvanceResult;
  const state = (layer: number, point: Point) => {
    const { states } =
      captured.layers[layer * parts.length + parts.indexOf(point as (typeof parts)[number])]!;
    return states!.data;
  };
  const token = target ?? (captured.next?.tokenIds[0] as number);
  const { direction, constant } = await context.logitDirection(state(nLayer - 1, "block_out"), token);
  const of = (layer: number, point: Point) => {
    const values = state(layer, point);
    return values.reduce((sum, value, i) => sum + value * (direction[i] as number), 0);
  };
  const embedding = of(0, "block_in");
  const blocks = layers.map((layer) => ({
    layer,
    attention: of(layer, "attn_out"),
    mlp: of(layer, "ffn_out"),
  }));
  return {
    target_token_id: token,
    logit: captured.logits?.[token] as number,
    sum: blocks.reduce((sum, { attention, mlp }) => sum + attention + mlp, embedding + constant),
    embedding,
    constant,
    blocks,
  };
}
