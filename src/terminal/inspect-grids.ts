import type { AttentionHead, CaptureResult, Decomposition, InspectResult } from "../contracts/index.js";
import type { LensView } from "../contracts/names.js";
import { differenceAxis, shareEnd } from "../findings/axes.js";
import {
  type AttentionKind,
  attentionKinds,
  expertsStory,
  firstShare,
  kindsOf,
  layersByPoint,
  pointMeanings,
  total,
} from "../findings/blocks.js";
import { followedLayers, type LensReading, lensReadings, viewValues } from "../findings/lens.js";
import { differenceDigits, fixed, shortNumber, shortProbability } from "../findings/numbers.js";
import { visible } from "../text/visible.js";
import { type Canvas, narrowest } from "./canvas.js";
import { wrap } from "./fit.js";
import { legend } from "./legend.js";
import { heading, labelled } from "./page.js";
import { differenceScale, magnitudeScale, probabilityScale } from "./paint.js";
import { tokenGrid } from "./token-grid.js";

/**
 * The logit lens: the top prediction of every layer at every token, coloured by its probability. Cells with the model's
 * answer are bold. Notes explain layers without predictions.
 */
export function lensGrid(
  result: Pick<InspectResult, "tokens" | "layers" | "next_tokens">,
  canvas: Canvas,
): string {
  const notes = new Set(result.layers.flatMap(({ note }) => (note === undefined ? [] : [note])));
  const [plain] = lensReadings({ layers: result.layers });
  const grid = plain === undefined ? [] : readingGrid(result, plain, canvas);
  return [...grid, ...[...notes].flatMap((note) => wrap(note, canvas.width))].join("\n");
}

/** The readings of one lens, token by token. */
export function readingGrid(
  { tokens, next_tokens }: Pick<InspectResult, "tokens" | "next_tokens">,
  { layers }: LensReading,
  canvas: Canvas,
): string[] {
  const answer = next_tokens[0]?.token_id;
  const rows = layers.map(({ layer, predictions }) => ({
    layer,
    cells: predictions.map(([top]) =>
      top === undefined
        ? { figure: "", value: 0 }
        : {
            text: visible(top.token),
            figure: shortProbability(top.probability),
            value: top.probability,
            bold: top.token_id === answer,
          },
    ),
  }));
  return tokenGrid({ tokens, rows, scale: probabilityScale, figureOptional: true }, canvas);
}

/** A measure of one lens, token by token; `most` is the end of the colour scale, shared by all lenses of a result. */
export function measureGrid(
  { tokens }: Pick<InspectResult, "tokens">,
  { layers }: LensReading,
  view: Exclude<LensView, "token">,
  most: number,
  canvas: Canvas,
): string[] {
  const rows = layers.flatMap((found) => {
    const values = viewValues(found, view);
    if (values === undefined || values.length < tokens.length) return [];
    const cells = values.map((value) => ({
      figure: view === "rank" ? `#${value < 10_000 ? value : shortNumber(value)}` : shortNumber(value),
      // Ranks differ by orders of magnitude.
      value:
        most <= 0 ? 0 : view === "rank" ? Math.log(value) / Math.max(1e-9, Math.log(most)) : value / most,
    }));
    return [{ layer: found.layer, cells }];
  });
  if (rows.length === 0) return [];
  return tokenGrid({ tokens, rows, scale: magnitudeScale }, canvas);
}

/** The probability and rank of the tracked token, if there is one. */
export function targetGrid(result: Pick<InspectResult, "tokens" | "layers">, canvas: Canvas): string[] {
  const rows = followedLayers(result).map(({ layer, target }) => ({
    layer,
    cells: target.map(({ probability, rank }) => ({
      text: `#${rank < 10_000 ? rank : shortNumber(rank)}`,
      // Far from the answer, only the order of magnitude changes.
      figure: probability < 0.005 ? shortNumber(probability) : shortProbability(probability),
      value: probability,
      bold: rank === 1,
    })),
  }));
  if (rows.length === 0) return [];
  const { tokens } = result;
  return tokenGrid({ tokens, rows, scale: probabilityScale, figureOptional: true }, canvas);
}

/**
 * The norm of the residual stream for every layer and token, coloured on a log scale: norms differ by orders of magnitude,
 * and one outlier token must not make all others look the same.
 */
export function normsGrid(result: Pick<CaptureResult, "tokens" | "layers">, canvas: Canvas): string {
  const logs = result.layers.flatMap(({ norms }) => norms.filter((norm) => norm > 0).map(Math.log));
  const low = logs.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const high = logs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const place = (norm: number) => (norm <= 0 ? 0 : high > low ? (Math.log(norm) - low) / (high - low) : 0.5);
  const rows = result.layers.map(({ layer, norms }) => ({
    layer,
    cells: norms.map((norm) => ({ figure: shortNumber(norm), value: place(norm) })),
  }));
  return tokenGrid({ tokens: result.tokens, rows, scale: magnitudeScale }, canvas).join("\n");
}

/** Norms at the points inside the blocks, one grid per point. */
export function innerPointsPicture(
  result: Pick<InspectResult, "tokens" | "points">,
  canvas: Canvas,
): string[] {
  return [...layersByPoint(result)].flatMap(([point, layers]) => [
    "",
    heading(point, `norm of ${pointMeanings[point]}`, legend(magnitudeScale, "low", "high", canvas), canvas),
    ...normsGrid({ tokens: result.tokens, layers }, canvas).split("\n"),
  ]);
}

/** Direct logit attribution: every block's attention and MLP, the deepest block on top. */
export function decompositionPicture(found: Decomposition | undefined, canvas: Canvas): string[] {
  if (found === undefined) return [];
  const { blocks, embedding, constant, logit } = found;
  const {
    reach,
    digits,
    legend: ends,
  } = differenceAxis(blocks.flatMap(({ attention, mlp }) => [attention, mlp]));
  // Coloured by the number as written, so that cells that read alike look alike.
  const cell = (value: number) => {
    const written = fixed(value, digits);
    return {
      figure: value > 0 && Number(written) !== 0 ? `+${written}` : written,
      value: 0.5 + Number(written) / reach / 2,
    };
  };
  const rows = blocks.map(({ layer, attention, mlp }) => ({ layer, cells: [cell(attention), cell(mlp)] }));
  return [
    "",
    heading(
      "Contributions",
      `of each block to the logit of “${visible(found.target_token)}”`,
      legend(differenceScale, ends[0].text, ends[2].text, canvas),
      canvas,
    ),
    ...tokenGrid(
      { tokens: ["attention", "MLP"], rows, scale: differenceScale },
      { ...canvas, width: Math.max(narrowest, Math.min(canvas.width, 34)) },
    ),
    ...labelled(
      "Logit",
      `${signedLogit(logit)}: embedding ${signedLogit(embedding)}, ` +
        `attention ${signedLogit(total(blocks, "attention"))}, MLP ${signedLogit(total(blocks, "mlp"))}` +
        (constant === 0 ? "" : `, biases ${signedLogit(constant)}`),
      canvas,
    ),
  ];
}

function signedLogit(value: number): string {
  const text = Math.abs(value) < 99.995 ? value.toFixed(2) : shortNumber(value);
  return value > 0 ? `+${text}` : text.replace(/^-(0\.00)$/, "$1");
}

/** Width of a cell and of the margin, in columns. */
const [cellWidth, margin] = [9, 6];

/** Layers as rows and heads as columns, one grid per attention pattern; heads that do not fit continue below. */
export function attentionPicture(heads: readonly AttentionHead[] | undefined, canvas: Canvas): string[] {
  if (heads === undefined || heads.length === 0) return [];
  const layers = [...new Set(heads.map(({ layer }) => layer))];
  const numbers = [...new Set(heads.map(({ head }) => head))];
  const most = Math.floor((Math.max(narrowest, canvas.width) - margin) / cellWidth);
  const lines = Array.from({ length: Math.ceil(numbers.length / most) }, (_, line) =>
    numbers.slice(line * most, (line + 1) * most),
  );
  const endOf = (kind: AttentionKind) => shareEnd(heads.flatMap((head) => head[kind] ?? []));
  const grid = (kind: AttentionKind, shown: readonly number[]) => {
    const end = endOf(kind);
    const digits = differenceDigits(end);
    return tokenGrid(
      {
        tokens: shown.map((head) => `h${head}`),
        rows: layers.map((layer) => ({
          layer,
          cells: shown.map((number) => {
            const found = heads.find((head) => head.layer === layer && head.head === number)?.[kind];
            const written = (found ?? 0).toFixed(digits);
            return { figure: found == null ? "" : written, value: Number(written) / end };
          }),
        })),
        scale: probabilityScale,
      },
      { ...canvas, width: margin + cellWidth * shown.length },
    );
  };
  return kindsOf(heads).flatMap((kind) => [
    "",
    heading(
      "Attention",
      attentionKinds[kind],
      legend(probabilityScale, "0", String(endOf(kind)), canvas),
      canvas,
    ),
    ...lines.flatMap((shown) => grid(kind, shown)),
  ]);
}

/** Each token's first expert, with layers as rows, and the most chosen experts per layer. */
export function routingPicture(
  { tokens, routing = [] }: Pick<InspectResult, "tokens" | "routing">,
  canvas: Canvas,
): string[] {
  if (routing.length === 0) return [];
  const rows = routing.map((found) => ({
    layer: found.layer,
    cells: found.chosen.map((chosen, token) => ({
      figure: String(chosen[0]),
      value: firstShare(found, token),
    })),
  }));
  const columns = Math.max(narrowest, canvas.width);
  return [
    "",
    heading(
      "Experts",
      "each token's first expert, coloured by its share of the token's weights",
      legend(probabilityScale, "0", "1", canvas),
      canvas,
    ),
    ...tokenGrid({ tokens, rows, scale: probabilityScale }, { ...canvas, width: columns }),
    ...routing.flatMap((found) => labelled(`layer ${found.layer}`, `${expertsStory(found)}.`, canvas)),
  ];
}
