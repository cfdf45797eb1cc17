import type { InspectResult } from "../contracts/index.js";
import type { Canvas } from "./canvas.js";
import { shortNumber, shortProbability } from "./figures.js";
import { probabilityScale } from "./paint.js";
import { tokenGrid } from "./token-grid.js";

/** What the lens says of one token; nothing where the result follows the model's answer after the last token alone. */
export function targetGrid(
  { tokens, layers }: Pick<InspectResult, "tokens" | "layers">,
  canvas: Canvas,
): string[] {
  const rows = layers.flatMap(({ layer, target }) =>
    target === undefined || target.length < tokens.length
      ? []
      : [
          {
            layer,
            cells: target.map(({ probability, rank }) => ({
              text: `#${rank < 10_000 ? rank : shortNumber(rank)}`,
              // Far from the answer the order of magnitude is what moves.
              figure: probability < 0.005 ? shortNumber(probability) : shortProbability(probability),
              value: probability,
              bold: rank === 1,
            })),
          },
        ],
  );
  if (rows.length === 0) return [];
  return tokenGrid({ tokens, rows, scale: probabilityScale, figureOptional: true }, canvas);
}
