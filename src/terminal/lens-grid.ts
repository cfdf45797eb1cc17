import type { InspectResult } from "../contracts/index.js";
import type { Canvas } from "./canvas.js";
import { shortProbability } from "./figures.js";
import { probabilityScale } from "./paint.js";
import { visible, wrap } from "./text.js";
import { tokenGrid } from "./token-grid.js";

/**
 * The logit lens: for every layer and token the token that the block's output would answer with, coloured by its
 * probability. Cells that already hold the model's answer are bold. Layers without predictions are told in words.
 */
export function lensGrid(
  result: Pick<InspectResult, "tokens" | "layers" | "next_tokens">,
  canvas: Canvas,
): string {
  const answer = result.next_tokens[0]?.token_id;
  const rows = result.layers.flatMap(({ layer, predictions }) => {
    if (predictions === undefined) return [];
    const cells = predictions.map(([top]) =>
      top === undefined
        ? { text: "", figure: "", value: 0 }
        : {
            text: visible(top.token),
            figure: shortProbability(top.probability),
            value: top.probability,
            bold: top.token_id === answer,
          },
    );
    return [{ layer, cells }];
  });
  const notes = new Set(result.layers.flatMap(({ note }) => (note === undefined ? [] : [note])));
  const grid =
    rows.length === 0
      ? []
      : tokenGrid({ tokens: result.tokens, rows, scale: probabilityScale, figureOptional: true }, canvas);
  return [...grid, ...[...notes].flatMap((note) => wrap(note, canvas.width))].join("\n");
}
