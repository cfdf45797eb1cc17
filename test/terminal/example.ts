import type { InspectResult } from "../../src/contracts/index.js";

type Example = Pick<InspectResult, "tokens" | "layers" | "next_tokens">;

/** A possible inspect result for these tokens: the answer leads at the last token from `leads` on. */
export function example(
  tokens: string[],
  options: { layers?: number; leads?: number; answer?: string } = {},
): Example {
  const { layers = 8, leads = 5, answer = " Paris" } = options;
  const guess = (layer: number, index: number) => {
    const last = index === tokens.length - 1;
    const token = last && layer >= leads ? answer : (tokens[(index + layer) % tokens.length] as string);
    const probability = ((layer + 1) / layers) * (last ? 0.98 : 0.3 + ((index * 7) % 5) / 10);
    return [
      { token_id: token === answer ? 999 : index + layer, token, probability },
      { token_id: 1000, token: " the", probability: (1 - probability) / 2 },
    ];
  };
  return {
    tokens,
    layers: Array.from({ length: layers }, (_, layer) => ({
      layer,
      norms: tokens.map((_, index) => (index === 0 ? 80 : 4) * (1 + layer * 1.7 + index / 9)),
      predictions: tokens.map((_, index) => guess(layer, index)),
    })),
    next_tokens: [
      { token_id: 999, token: answer, probability: 0.974 },
      { token_id: 3, token: " Lyon", probability: 0.013 },
      { token_id: 4, token: " the", probability: 0.008 },
      { token_id: 5, token: "\n", probability: 0.0004 },
      { token_id: 6, token: " 東京", probability: 0.0001 },
    ],
  };
}
