import type { CardArm } from "../contracts/card.js";

/** A setting of a card in words. */
export function armName({ kind, factor, seed }: Pick<CardArm, "kind" | "factor" | "seed">): string {
  if (kind === "base") return "unedited model";
  if (kind === "zero") return "strength zero";
  return kind === "profile" ? `strength × ${factor}` : `random vector ${seed}, strength × ${factor}`;
}
