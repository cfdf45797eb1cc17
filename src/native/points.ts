import { invalid } from "./check.js";

/**
 * Where a block's numbers can be looked at and changed, in the order in which it computes them; one vector of the hidden
 * size a token, each, but for `attention`, how much each token reads of each, and `router`, the experts that were chosen for
 * each token and their weights, which have requests of their own, and `head_out`, what each head read, side by side, before the output projection. `attn_out` and `ffn_out` are what the two halves add to the residual stream, behind whatever norm
 * or scale lies between; `mid` is the stream between them. A block without a middle computes both from its input.
 */
export const points = [
  "block_in",
  "attention",
  "head_out",
  "attn_out",
  "mid",
  "router",
  "ffn_out",
  "block_out",
] as const;
export type Point = (typeof points)[number];

/** Those that are the residual stream itself, of which a model's head can be asked, and no part of it. */
export const streamPoints: ReadonlySet<Point> = new Set(["block_in", "mid", "block_out"]);

/** @throws NativeError INVALID_ARGUMENT unless every entry is one of {@link points}, once */
export function checkPoints(wanted: unknown): void {
  if (!Array.isArray(wanted)) throw invalid(`Points must be an array of ${points.join(", ")}.`);
  for (const [index, point] of wanted.entries()) {
    checkPoint(point);
    if (wanted.indexOf(point) !== index) throw invalid(`The point ${point} is listed twice.`);
  }
}

export function checkPoint(point: unknown): void {
  if (points.includes(point as Point)) return;
  throw invalid(`A point must be ${points.join(", ")}, got ${JSON.stringify(point) ?? "nothing"}.`);
}
