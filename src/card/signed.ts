import type { Card } from "../contracts/card.js";
import { canonicalHash } from "../formats/canonical-json.js";

/** Adds the hash that covers everything else. */
export function signed(card: Omit<Card, "sha256">): Card {
  return { ...card, sha256: canonicalHash(card) };
}

/** Whether a card is as it was written. */
export function isIntact({ sha256, ...card }: Card): boolean {
  return signed(card).sha256 === sha256;
}
