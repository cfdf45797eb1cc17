import type { Model } from "../../native/index.js";

/** Sequences per packed batch. */
export const batchSequences = 64;
/**
 * Tokens per packed batch. Attention compares all rows with all cells, regardless of their sequence, so that short
 * texts pay for the other tokens: a CPU is fully used with 256, and 512 cost a sixth more. A GPU needs more.
 */
const batchTokens = { processor: 256, gpu: 2048 };

/** Logits that llama.cpp stores for a batch if all outputs of the last block are requested: 160 MiB. */
const batchLogits = 40 * 1024 ** 2;

/**
 * The number of tokens worth packing, depending on whether every token's activation is read or only the last one's.
 */
export function tokensOfBatch(
  { info }: Model,
  { layers, everyToken }: { layers: readonly number[]; everyToken: boolean },
): number {
  const onGpu = info.devices.some(({ host }) => !host);
  const usual = onGpu ? batchTokens.gpu : batchTokens.processor;
  const everyOutput = everyToken && layers.includes(info.nLayer - 1);
  return everyOutput ? Math.max(64, Math.min(usual, Math.floor(batchLogits / info.nVocab))) : usual;
}

/** Options of a context whose batches hold the longest text, or up to `most` tokens of shorter ones. */
export function packedContext(texts: { count: number; tokens: number; longest: number }, most: number) {
  const nBatch = Math.max(texts.longest, Math.min(texts.tokens, most));
  return { nCtx: nBatch, nBatch, maxSequences: Math.min(texts.count, batchSequences) };
}
