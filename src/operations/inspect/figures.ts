import type { InspectResult } from "../../contracts/index.js";
import { shareEnd } from "../../findings/axes.js";
import { layersByPoint, pointMeanings } from "../../findings/blocks.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf, tabled } from "../../findings/figure.js";
import { drawnLayers, lastTokenLayers } from "../../findings/lens.js";
import { figureOf, percent, shortNumber } from "../../findings/numbers.js";
import { inspectFinding } from "../../findings/story.js";
import type { Findings } from "../../report/parts.js";
import { visible } from "../../text/visible.js";
import { routing } from "./figures-experts.js";
import { answerByLayer, lens, notesOf, target } from "./figures-lens.js";
import { attention, contributions } from "./figures-within-blocks.js";

/** Logit lens, the answer by layer, norms and next tokens. */
export function inspectFindings(whole: InspectResult): Findings {
  const result = { ...whole, layers: drawnLayers(whole) };
  const { says, controls } = inspectFinding(whole);
  return {
    summary: [says, ...(controls === "" ? [] : [controls]), ...withoutLens(whole)],
    cautions: [
      "A readout is not causal evidence. The logit lens shows what a block's output predicts through the model's own final norm and head, not how later blocks use it, and not that the model has decided there.",
      "Early blocks may represent the answer in a form that this lens cannot read; a weak readout does not prove absence. A norm is the length of a vector and says nothing about its meaning.",
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

/** Why there is no lens at all. If only some layers lack it, the figure has a note. */
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
      `The L2 norm of ${what} at each token, on a logarithmic color scale, so that one outlier token ` +
      "does not hide the differences between the rest.",
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
    description: "The model's most probable next tokens after the last token.",
    chart: {
      ...{ kind: "bars", label: "token", value: "probability", axis: "probability" },
      domain: [0, shareEnd(candidates.map(({ probability }) => probability))],
    },
    ...tabled(candidates, {
      token: ["token", ({ token }) => visible(token), String],
      token_id: ["token id", (one) => one.token_id, String],
      probability: ["probability", (one) => one.probability, percent],
    }),
    details: candidates.map(
      ({ token, token_id, probability }) => `${visible(token)} (id ${token_id})\n${percent(probability)}`,
    ),
  };
}
