import type { Figure } from "../../findings/figure.js";
import { percent } from "../../findings/numbers.js";

/** The attention of one head of one block over one text. */
export interface HeadWeights {
  layer: number;
  head: number;
  /** Distinguishable for a reader. */
  tokens: readonly string[];
  /** One row per token: its attention to each token. Rows sum to 1. */
  weights: readonly (readonly number[])[];
}

/** Attention weights after the softmax, without the causally masked ones. */
export function attentionHead({ layer, head, tokens, weights }: HeadWeights): Figure {
  const cells = weights.flatMap((row, reader) =>
    row.flatMap((weight, position) =>
      weight === 0 && position > reader ? [] : [{ reader, position, weight }],
    ),
  );
  const named = (at: number) => `${tokens[at]} (token ${at})`;
  return {
    id: `attention-${layer}-${head}`,
    title: `Attention of layer ${layer}, head ${head}`,
    description:
      "Attention of each token (row) to each token (column), after the softmax; each row sums to 100 %. Heads with nothing to attend to park on the first token.",
    chart: {
      kind: "tokens",
      tokens: [...tokens],
      down: [...tokens],
      value: "weight",
      label: "shown",
      legend: "share of a token's attention",
      scale: "probability",
    },
    columns: [
      { name: "layer", label: "attending token" },
      { name: "position", label: "attended token" },
      { name: "weight", label: "weight" },
      { name: "shown", label: "weight, as shown" },
    ],
    rows: cells.map(({ reader, position, weight }) => [
      reader,
      position,
      weight,
      weight < 0.005 ? "" : percent(weight),
    ]),
    details: cells.map(
      ({ reader, position, weight }) => `${named(reader)} attends ${percent(weight)} to ${named(position)}`,
    ),
    table: {
      head: ["attending token", ...tokens],
      rows: weights.map((row, reader) => [named(reader), ...row.map((weight) => percent(weight))]),
    },
  };
}
