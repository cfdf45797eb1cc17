import type { Figure } from "../../findings/figure.js";
import { percent } from "../../findings/numbers.js";

/** One head of one block, as it read one text. */
export interface HeadWeights {
  layer: number;
  head: number;
  /** As a reader can tell them apart. */
  tokens: readonly string[];
  /** A row for each token, what it reads of each; rows add up to 1. */
  weights: readonly (readonly number[])[];
}

/** What each token reads of each, after the softmax; what no token reads, since it comes later, is left out. */
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
      "How much each token (a row) reads of each (a column), after the softmax; a row adds up to 100 %. The first token is where a head rests that has nothing to read.",
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
      { name: "layer", label: "reading token" },
      { name: "position", label: "token that is read" },
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
      ({ reader, position, weight }) => `${named(reader)} reads ${percent(weight)} of ${named(position)}`,
    ),
    table: {
      head: ["reading token", ...tokens],
      rows: weights.map((row, reader) => [named(reader), ...row.map((weight) => percent(weight))]),
    },
  };
}
