import type { AttentionHead, Decomposition, InspectResult, Routing } from "../contracts/index.js";
import { percentTo } from "./numbers.js";

/** A short description of each point of a block. */
export const pointMeanings = {
  block_in: "the residual stream into each block",
  attn_out: "each block's attention output",
  mid: "the residual stream mid-block, between attention and MLP",
  ffn_in: "each block's MLP input, after its norm",
  ffn_out: "each block's MLP output",
} as const;

/** The layers of each requested point. */
export function layersByPoint({ points }: Pick<InspectResult, "points">) {
  const found = new Map<keyof typeof pointMeanings, NonNullable<InspectResult["points"]>>();
  for (const each of points ?? []) found.set(each.point, [...(found.get(each.point) ?? []), each]);
  return found;
}

/** The sum over the blocks. */
export function total(blocks: Decomposition["blocks"], part: "attention" | "mlp"): number {
  return blocks.reduce((sum, block) => sum + block[part], 0);
}

/** Known patterns of attention heads. */
export const attentionKinds = {
  previous: "how much tokens attend to the previous token",
  induction: "how much repeated tokens attend to the token after their first occurrence",
  first: "how much tokens attend to the first token, where idle heads park",
} as const;
export type AttentionKind = keyof typeof attentionKinds;

/** The patterns that apply to this text: induction needs repeated tokens. */
export function kindsOf(heads: readonly AttentionHead[]): AttentionKind[] {
  return (Object.keys(attentionKinds) as AttentionKind[]).filter((kind) =>
    heads.some((head) => head[kind] !== null),
  );
}

/** Maximum number of experts named per layer. */
const named = 6;

/** The first expert's share of a token's weights; 0 if they sum to 0. */
export function firstShare({ weights }: Pick<Routing, "weights">, token: number): number {
  const own = weights[token] ?? [];
  const total = own.reduce((sum, weight) => sum + weight, 0);
  return total > 0 ? (own[0] as number) / total : 0;
}

/** How often a layer's experts were chosen: the most used ones, and how many were never chosen. */
export function expertsStory({ experts, used, shares }: Routing): string {
  const order = [...shares.keys()].sort((a, b) => (shares[b] as number) - (shares[a] as number));
  const never = shares.filter((share) => share === 0).length;
  const most = order
    .slice(0, named)
    .filter((expert) => (shares[expert] as number) > 0)
    .map((expert) => `${expert} (${percentTo(shares[expert] as number, 1)})`);
  return (
    `${used} of ${experts} experts per token; most chosen: ${most.join(", ")}` +
    (never === 0 ? "" : `; ${never} never chosen`)
  );
}
