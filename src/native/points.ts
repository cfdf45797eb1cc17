import { invalid } from "./check.js";

/**
 * The points of a block that can be read and changed, in the order of computation. Each has one vector of the hidden size
 * per token, except `attention` (weights) and `router` (chosen experts and their weights), which have separate requests,
 * and `head_out`, the concatenated outputs of the heads before the output projection. `attn_out` and `ffn_out` are the
 * additions of the two halves to the residual stream, after any norm or scale; `mid` is the stream between them, and `ffn_in`
 * the output of the norm before the MLP, which the MLP reads. A block without `mid` computes both from its input.
 */
export const points = [
  "block_in",
  "attention",
  "head_out",
  "attn_out",
  "mid",
  "ffn_in",
  "router",
  "ffn_out",
  "block_out",
] as const;
export type Point = (typeof points)[number];

/** Points in the residual stream, to which a model's head can be applied. */
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
