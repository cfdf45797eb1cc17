import type { AttentionHead, Decomposition, InspectResult, Routing } from "../contracts/index.js";
import { percentTo } from "./numbers.js";

/** What each point of a block is, in few words. */
export const pointMeanings = {
  block_in: "the residual stream before each block",
  attn_out: "what each block's attention adds to the stream",
  mid: "the stream between attention and MLP",
  ffn_out: "what each block's MLP adds to the stream",
} as const;

/** Of each point that was asked for, its layers. */
export function layersByPoint({ points }: Pick<InspectResult, "points">) {
  const found = new Map<keyof typeof pointMeanings, NonNullable<InspectResult["points"]>>();
  for (const each of points ?? []) found.set(each.point, [...(found.get(each.point) ?? []), each]);
  return found;
}

/** The sum over the blocks. */
export function total(blocks: Decomposition["blocks"], part: "attention" | "mlp"): number {
  return blocks.reduce((sum, block) => sum + block[part], 0);
}

/** What heads are known to look at, and in which words. */
export const attentionKinds = {
  previous: "how much tokens read the token before them",
  induction: "how much repeated tokens read what came after their first occurrence",
  first: "how much tokens read the first token, where a head rests",
} as const;
export type AttentionKind = keyof typeof attentionKinds;

/** The kinds that this text says something about: induction needs tokens that come again. */
export function kindsOf(heads: readonly AttentionHead[]): AttentionKind[] {
  return (Object.keys(attentionKinds) as AttentionKind[]).filter((kind) =>
    heads.some((head) => head[kind] !== null),
  );
}

/** Experts that a sentence names of a layer. */
const named = 6;

/** Of a token, the share of its weights that its first expert has; 0 where they sum to nothing. */
export function firstShare({ weights }: Pick<Routing, "weights">, token: number): number {
  const own = weights[token] ?? [];
  const total = own.reduce((sum, weight) => sum + weight, 0);
  return total > 0 ? (own[0] as number) / total : 0;
}

/** How often experts of a layer were chosen, in words: the most used, and how many never were. */
export function expertsStory({ experts, used, shares }: Routing): string {
  const order = [...shares.keys()].sort((a, b) => (shares[b] as number) - (shares[a] as number));
  const never = shares.filter((share) => share === 0).length;
  const most = order
    .slice(0, named)
    .filter((expert) => (shares[expert] as number) > 0)
    .map((expert) => `${expert} (${percentTo(shares[expert] as number, 1)})`);
  return (
    `${used} of ${experts} experts a token; most chosen: ${most.join(", ")}` +
    (never === 0 ? "" : `; ${never} never`)
  );
}
