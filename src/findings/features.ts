import type { FeaturesResult } from "../contracts/index.js";

/** The maximum activation among examples, above 0 so that it can divide. */
export function greatestActivation(
  groups: readonly { examples: readonly { activation: number }[] }[],
): number {
  return greatest(groups.flatMap(({ examples }) => examples.map(({ activation }) => activation)));
}

/** The maximum of activations, above 0 so that it can divide. */
export function greatest(activations: readonly number[]): number {
  return Math.max(Number.MIN_VALUE, ...activations);
}

/** The shade of a token: its activation as a share of the maximum, from 0 to 1. */
export function shadeOf(activation: number, most: number): number {
  return Math.max(0, Math.min(1, activation / most));
}

/** A token with up to `before` preceding tokens. */
export function upTo(texts: FeaturesResult["texts"], text: number, token: number, before: number): string[] {
  return texts[text]?.tokens.slice(Math.max(0, token - before), token + 1) ?? [];
}
