// The words that experiments know, apart from the schemas: the command line names them without loading these.
export const strengthUnits = ["unit", "vector", "row_norm"] as const;
export const positionNames = ["last", "all", "prompt", "generated"] as const;
export const patchDirections = ["denoise", "noise"] as const;
/** What a model's blocks may have, in the order in which they compute it. */
export const modelPoints = [
  "block_in",
  "attention",
  "head_out",
  "attn_out",
  "mid",
  "router",
  "ffn_out",
  "block_out",
] as const;
export type ModelPoint = (typeof modelPoints)[number];
/** Those of them beside the output, which every experiment reads unless told otherwise, that are one vector of the hidden size a token. */
export const innerPoints = ["block_in", "attn_out", "mid", "ffn_out"] as const;
/** All that are one such vector. */
export const blockPoints = [...innerPoints, "block_out"] as const;
export type BlockPoint = (typeof blockPoints)[number];

/** Whether a word is one of them. */
export function isBlockPoint(word: unknown): word is BlockPoint {
  return (blockPoints as readonly unknown[]).includes(word);
}

/** What a file or a result says of the point that it is of; nothing where that is the block's output. */
export function saidPoint<P extends string>(point: P | undefined): { point?: P } {
  return point === undefined || point === "block_out" ? {} : { point };
}

/** What comparisons and patch sweeps change: these, and what heads read, each its own part. */
export const changedPoints = ["block_in", "head_out", "attn_out", "mid", "ffn_out", "block_out"] as const;
export type ChangedPoint = (typeof changedPoints)[number];
/** In place of positions: the spans that are marked in both texts of a pair, between these. */
export const alignedPositions = "aligned";
export const spanMarks = ["[[", "]]"] as const;

/** What the pictures of a lens's readings show at each token. */
export const lensViews = ["token", "rank", "entropy", "divergence"] as const;
export type LensView = (typeof lensViews)[number];

/** Which rows of a text are read: one of them or of their mean, of the mean behind a prompt, or every token's. */
export const textRows = ["last", "mean", "response", "all"] as const;
export type RowsRead = (typeof textRows)[number];

/** What becomes of the features of an autoencoder that is trained. */
export const saeArchitectures = ["relu", "topk", "batchtopk", "jumprelu"] as const;

/** Forms of a model with fewer bits that a recipe may have made. */
export const quantisations = ["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"] as const;
