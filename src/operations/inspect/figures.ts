import type { InspectResult } from "../../contracts/index.js";
import { layersByPoint, pointMeanings } from "../../findings/blocks.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf } from "../../findings/figure.js";
import { drawnLayers, lastTokenLayers } from "../../findings/lens.js";
import { figureOf, percent, shortNumber } from "../../findings/numbers.js";
import { story } from "../../findings/story.js";
import { visible } from "../../findings/text.js";
import type { Findings } from "../../report/parts.js";
import { routing } from "./figures-experts.js";
import { answerByLayer, lens, notesOf, target } from "./figures-lens.js";
import { attention, contributions } from "./figures-within-blocks.js";

/** Logit lens, the answer's way up, norms and next tokens. */
export function inspectFindings(whole: InspectResult): Findings {
  const result = { ...whole, layers: drawnLayers(whole) };
  return {
    summary: [story(whole), ...withoutLens(whole)],
    cautions: [
      "A readout is not causal evidence. The logit lens shows what a block's output would say through the model's own final norm and head, not what later blocks take from it, and not that the model has decided there.",
      "Early blocks may hold the answer in a form that this lens cannot read; a weak readout is no proof of absence. A norm is the length of a vector and says nothing about what it stands for.",
    ],
    parts: [
      ...lens(result),
      ...target(result),
      ...answerByLayer({ ...whole, layers: lastTokenLayers(whole) }),
      norms(result),
      ...[...layersByPoint(result)].map(([point, layers]) =>
        normsOf(result.tokens, layers, {
          id: `norms-${point.replace("_", "-")}`,
          title: `Norms of ${point}`,
          what: pointMeanings[point],
        }),
      ),
      ...attention(result),
      ...routing(result),
      ...contributions(result.decomposition),
      nextTokens(result),
    ],
  };
}

/** Why there is no lens at all; where only some layers lack it, the figure says so. */
function withoutLens({ layers }: InspectResult): string[] {
  return layers.some(({ predictions }) => predictions !== undefined) ? [] : notesOf(layers);
}

function norms({ tokens, layers }: InspectResult): Figure {
  return normsOf(tokens, layers, { id: "norms", title: "Norms", what: "each block's output" });
}

function normsOf(
  tokens: readonly string[],
  layers: readonly { layer: number; norms: number[] }[],
  { id, title, what }: { id: string; title: string; what: string },
): Figure {
  const cells = layers.flatMap(({ layer, norms }) =>
    norms.map((norm, position) => ({ layer, position, norm })),
  );
  return {
    id,
    title,
    description:
      `The length (L2 norm) of ${what} at each token, coloured by its logarithm: one outlier token ` +
      "does not make all others look the same.",
    chart: {
      kind: "tokens",
      tokens: tokens.map(visible),
      value: "norm",
      label: "shown",
      legend: id === "norms" ? "L2 norm of the block output" : "L2 norm",
      scale: "magnitude",
    },
    ...dataOf(cells, {
      layer: ["layer", (one) => one.layer],
      position: ["position", (one) => one.position],
      input: ["input token", (one) => visible(tokens[one.position] as string)],
      norm: ["norm", (one) => one.norm],
      shown: ["norm, as shown", (one) => shortNumber(one.norm)],
    }),
    details: cells.map(
      ({ layer, position, norm }) =>
        `layer ${layer}, ${visible(tokens[position] as string)} (token ${position})\nnorm ${figureOf(norm)}`,
    ),
    table: {
      head: ["token", ...layers.map(({ layer }) => `layer ${layer}`)],
      rows: tokens.map((token, position) => [
        visible(token),
        ...layers.map(({ norms }) => figureOf(norms[position] as number)),
      ]),
    },
  };
}
function nextTokens({ next_tokens: candidates }: InspectResult): Figure {
  return {
    id: "next-tokens",
    title: "Next token",
    description: "What the model itself would say after the last token: its most probable candidates.",
    chart: { kind: "bars", label: "token", value: "probability", axis: "probability", domain: [0, 1] },
    ...dataOf(candidates, {
      token: ["token", ({ token }) => visible(token)],
      token_id: ["token id", (one) => one.token_id],
      probability: ["probability", (one) => one.probability],
    }),
    details: candidates.map(
      ({ token, token_id, probability }) => `${visible(token)} (id ${token_id})\n${percent(probability)}`,
    ),
    table: {
      head: ["token", "id", "probability"],
      rows: candidates.map(({ token, token_id, probability }) => [
        visible(token),
        String(token_id),
        percent(probability),
      ]),
    },
  };
}
