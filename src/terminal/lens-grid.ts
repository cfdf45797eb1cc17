import type { InspectResult } from "../contracts/index.js";
import type { LensView } from "../contracts/names.js";
import { type LensReading, lensReadings, viewValues } from "../findings/lens.js";
import { shortNumber, shortProbability } from "../findings/numbers.js";
import { visible } from "../findings/text.js";
import type { Canvas } from "./canvas.js";
import { wrap } from "./fit.js";
import { magnitudeScale, probabilityScale } from "./paint.js";
import { tokenGrid } from "./token-grid.js";

/**
 * The logit lens: for every layer and token the token that the block's output would answer with, coloured by its
 * probability. Cells that already hold the model's answer are bold. Layers without predictions are told in words.
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

/** What one lens reads, token by token. */
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
        ? { text: "", figure: "", value: 0 }
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

/** A measure of one lens, token by token; the same colours for all lenses of a result, up to `most`. */
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
      text: "",
      figure: view === "rank" ? `#${value < 10_000 ? value : shortNumber(value)}` : shortNumber(value),
      // Ranks differ by orders of magnitude.
      value:
        most <= 0 ? 0 : view === "rank" ? Math.log(value) / Math.max(1e-9, Math.log(most)) : value / most,
    }));
    return [{ layer: found.layer, cells }];
  });
  if (rows.length === 0) return [];
  return tokenGrid({ tokens, rows, scale: magnitudeScale, figureOptional: false }, canvas);
}
