import type { CaptureResult } from "../contracts/index.js";
import { shortNumber } from "../findings/numbers.js";
import type { Canvas } from "./canvas.js";
import { magnitudeScale } from "./paint.js";
import { tokenGrid } from "./token-grid.js";

/**
 * The length of the residual stream for every layer and token, coloured by its logarithm: norms of one model
 * differ by orders of magnitude, and one outlier token must not make all others look the same.
 */
export function normsGrid(result: Pick<CaptureResult, "tokens" | "layers">, canvas: Canvas): string {
  const logs = result.layers.flatMap(({ norms }) => norms.filter((norm) => norm > 0).map(Math.log));
  const low = logs.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const high = logs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const place = (norm: number) => (norm <= 0 ? 0 : high > low ? (Math.log(norm) - low) / (high - low) : 0.5);
  const rows = result.layers.map(({ layer, norms }) => ({
    layer,
    cells: norms.map((norm) => ({ text: "", figure: shortNumber(norm), value: place(norm) })),
  }));
  return tokenGrid(
    { tokens: result.tokens, rows, scale: magnitudeScale, figureOptional: false },
    canvas,
  ).join("\n");
}
