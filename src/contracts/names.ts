// The vocabulary of experiments, separate from the schemas: the command line uses it without loading them.
export const strengthUnits = ["unit", "vector", "row_norm"] as const;
export const positionNames = ["last", "all", "prompt", "generated"] as const;
export const patchDirections = ["denoise", "noise"] as const;
/** Points that a model's blocks may have, in order of computation. */
export const modelPoints = [
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
export type ModelPoint = (typeof modelPoints)[number];
/**
 * The points other than the output (the default of every experiment) with one vector of the hidden size per token.
 */
export const innerPoints = ["block_in", "attn_out", "mid", "ffn_in", "ffn_out"] as const;
/** All points with one such vector per token. */
export const blockPoints = [...innerPoints, "block_out"] as const;
export type BlockPoint = (typeof blockPoints)[number];

/** The points that a transcoder can predict, from `ffn_in` of the same block. */
export const targetPoints = ["ffn_out"] as const;
export type TargetPoint = (typeof targetPoints)[number];

/** Whether a value is a point with one vector of the hidden size per token. */
export function isBlockPoint(word: unknown): word is BlockPoint {
  return (blockPoints as readonly unknown[]).includes(word);
}

/** The `point` field of a file or result; empty for the block's output. */
export function pointField<P extends string>(point: P | undefined): { point?: P } {
  return point === undefined || point === "block_out" ? {} : { point };
}

/** The words for activations at a point. */
export function rowsAtPoint(point: BlockPoint = "block_out"): string {
  return point === "block_out" ? "block outputs" : point;
}

/** Points that comparisons and patch sweeps can edit, including single heads (head_out). */
export const changedPoints = [
  "block_in",
  "head_out",
  "attn_out",
  "mid",
  "ffn_in",
  "ffn_out",
  "block_out",
] as const;
export type ChangedPoint = (typeof changedPoints)[number];
/** Instead of positions: the spans marked with these in both texts of a pair. */
export const alignedPositions = "aligned";
export const spanMarks = ["[[", "]]"] as const;

/** What a lens plot shows at each token. */
export const lensViews = ["token", "rank", "entropy", "divergence"] as const;
export type LensView = (typeof lensViews)[number];

/** Which activations of a text are read: the last token's, the mean, the mean after a prompt, or every token's. */
export const textRows = ["last", "mean", "response", "all"] as const;
export type RowsRead = (typeof textRows)[number];

/** Activation functions of trained sparse autoencoders. */
export const saeArchitectures = ["relu", "topk", "batchtopk", "jumprelu"] as const;

/** Quantizations that a recipe may request. */
export const quantisations = ["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"] as const;

/** Whether a data set is at a URL that fsspec reads. */
export function isUrl(place: string): boolean {
  return /^(s3|gs|https?):\/\//.test(place);
}

/** Whether a folder is in object storage. */
export function isBucket(place: string): boolean {
  return /^(s3|gs):\/\//.test(place);
}

/** Engines that run the parts of an extraction, see docs/scaling.md. */
export const engineNames = ["local", "slurm"] as const;
export type EngineName = (typeof engineNames)[number];
