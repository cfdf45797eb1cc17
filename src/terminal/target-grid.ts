import type { InspectResult } from "../contracts/index.js";
import { followedLayers } from "../findings/lens.js";
import { shortNumber, shortProbability } from "../findings/numbers.js";
import type { Canvas } from "./canvas.js";
import { probabilityScale } from "./paint.js";
import { tokenGrid } from "./token-grid.js";

/** What the lens says of one token, where the result follows it. */
export function targetGrid(result: Pick<InspectResult, "tokens" | "layers">, canvas: Canvas): string[] {
  const rows = followedLayers(result).map(({ layer, target }) => ({
    layer,
    cells: target.map(({ probability, rank }) => ({
      text: `#${rank < 10_000 ? rank : shortNumber(rank)}`,
      // Far from the answer the order of magnitude is what moves.
      figure: probability < 0.005 ? shortNumber(probability) : shortProbability(probability),
      value: probability,
      bold: rank === 1,
    })),
  }));
  if (rows.length === 0) return [];
  const { tokens } = result;
  return tokenGrid({ tokens, rows, scale: probabilityScale, figureOptional: true }, canvas);
}
