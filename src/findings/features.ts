import type { FeaturesResult } from "../contracts/index.js";

/** The greatest activation among examples, above 0 so that it can divide. */
export function greatestActivation(
  groups: readonly { examples: readonly { activation: number }[] }[],
): number {
  return greatest(groups.flatMap(({ examples }) => examples.map(({ activation }) => activation)));
}

/** The greatest of the activations, above 0 so that it can divide. */
export function greatest(activations: readonly number[]): number {
  return Math.max(Number.MIN_VALUE, ...activations);
}

/** How strongly a token is shaded: its activation as a share of the greatest, from 0 to 1. */
export function shadeOf(activation: number, most: number): number {
  return Math.max(0, Math.min(1, activation / most));
}

/** A token with so many of those before it. */
export function upTo(texts: FeaturesResult["texts"], text: number, token: number, before: number): string[] {
  return texts[text]?.tokens.slice(Math.max(0, token - before), token + 1) ?? [];
}
