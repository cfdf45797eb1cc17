import type { Model } from "../../native/index.js";

/** Sequences that one packed batch holds. */
export const batchSequences = 64;
/**
 * Tokens of a packed batch. All its rows are compared with all its cells, whichever sequence they belong to, so that short
 * texts pay for the others' tokens: on a processor 256 use it fully, and 512 cost a sixth more. A GPU wants more of them.
 */
const batchTokens = { processor: 256, gpu: 2048 };

/** The most tokens that are worth packing for a model. */
export function tokensOfBatch({ info }: Model): number {
  const onGpu = info.devices.some(({ host }) => !host);
  return onGpu ? batchTokens.gpu : batchTokens.processor;
}

/** The context whose batches hold the longest of some texts, and `most` tokens of shorter ones. */
export function packedContext(texts: { count: number; tokens: number; longest: number }, most: number) {
  const nBatch = Math.max(texts.longest, Math.min(texts.tokens, most));
  return { nCtx: nBatch, nBatch, maxSequences: Math.min(texts.count, batchSequences) };
}
