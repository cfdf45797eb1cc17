import type { AttentionHead, Decomposition, InspectResult } from "../../contracts/index.js";
import { attentionKinds, kindsOf, total } from "../../findings/blocks.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf } from "../../findings/figure.js";
import { figureOf, percent, signed } from "../../findings/numbers.js";
import { visible } from "../../text/visible.js";

/** What each head attends to: layers over heads, a figure for each of the classic kinds of heads. */
export function attention({ attention: heads = [], tokens }: InspectResult): Figure[] {
  const numbers = [...new Set(heads.map(({ head }) => head))];
  const layers = [...new Set(heads.map(({ layer }) => layer))];
  const read = ({ last }: AttentionHead) =>
    last
      .map(
        ({ position, weight }) =>
          `${visible(tokens[position] as string)} (token ${position}) ${percent(weight)}`,
      )
      .join(", ");
  return kindsOf(heads).map((kind) => ({
    id: `attention-${kind}`,
    title: `Attention: ${kind === "previous" ? "the previous token" : kind === "first" ? "the first token" : kind}`,
    description: `For every block and head ${attentionKinds[kind]}, mean over this text. All weights are in attention.npz.`,
    chart: {
      kind: "tokens",
      tokens: numbers.map((head) => `head ${head}`),
      value: "share",
      label: "shown",
      legend: "share of the attention",
      scale: "probability",
    },
    ...dataOf(heads, {
      layer: ["layer", (one) => one.layer],
      position: ["column", ({ head }) => numbers.indexOf(head)],
      head: ["head", (one) => one.head],
      share: ["share", (head) => head[kind]],
      shown: ["share, as shown", (head) => (head[kind] ?? 0).toFixed(2)],
    }),
    details: heads.map(
      (head) =>
        `layer ${head.layer}, head ${head.head}\n${attentionKinds[kind]}: ${percent(head[kind] ?? 0)}\nthe last token attends to ${read(head)}`,
    ),
    table: {
      head: ["layer", ...numbers.map((head) => `head ${head}`)],
      rows: layers.map((layer) => [
        String(layer),
        ...numbers.map((number) => {
          const found = heads.find((head) => head.layer === layer && head.head === number);
          return found === undefined ? "" : percent(found[kind] ?? 0);
        }),
      ]),
    },
  }));
}

/** Direct logit attribution: the contributions of each block's attention and MLP. */
export function contributions(found: Decomposition | undefined): Figure[] {
  if (found === undefined) return [];
  const { blocks, embedding, constant, logit } = found;
  const target = visible(found.target_token);
  const parts = ["attention", "mlp"] as const;
  const names = { attention: "attention", mlp: "MLP" };
  const cells = blocks.flatMap((block) =>
    parts.map((part, column) => ({ layer: block.layer, part, column, contribution: block[part] })),
  );
  return [
    {
      id: "contributions",
      title: `Direct logit attribution of ${target}`,
      description:
        `The direct contribution of every block's attention and MLP to the logit of ${target} after the last token, with the ` +
        `final norm's scale frozen. Together with the embedding's (${signed(embedding)}) and the biases' ` +
        `(${signed(constant)}) they sum to the logit, ${figureOf(logit)}.`,
      chart: {
        kind: "sites",
        columns: parts.map((part) => ({ above: names[part], below: "" })),
        value: "contribution",
        legend: "contribution to the logit",
        least: 0,
      },
      ...dataOf(cells, {
        layer: ["layer", (one) => one.layer],
        column: ["column", (one) => one.column],
        part: ["part of the block", ({ part }) => names[part]],
        contribution: ["contribution", (one) => one.contribution],
        inside: ["contributes", () => 1],
      }),
      details: cells.map(
        ({ layer, part, contribution }) =>
          `layer ${layer}, ${names[part]}\n${signed(contribution)} of ${figureOf(logit)}`,
      ),
      notes: [
        `All attention ${signed(total(blocks, "attention"))}, all MLPs ${signed(total(blocks, "mlp"))}. Indirect effects are credited to the later block.`,
      ],
      table: {
        head: ["layer", "attention", "MLP"],
        rows: blocks.map(({ layer, attention, mlp }) => [String(layer), signed(attention), signed(mlp)]),
      },
    },
  ];
}
