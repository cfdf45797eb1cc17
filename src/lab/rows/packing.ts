import type { Model } from "../../native/index.js";

/** Sequences that one packed batch holds. */
export const batchSequences = 64;
/**
 * Tokens of a packed batch. All its rows are compared with all its cells, whichever sequence they belong to, so that short
 * texts pay for the others' tokens: on a processor 256 use it fully, and 512 cost a sixth more. A GPU wants more of them.
 */
const batchTokens = { processor: 256, gpu: 2048 };

/** Logits that llama.cpp holds for a batch of which the last block's rows are all wanted: 160 MiB. */
const batchLogits = 40 * 1024 ** 2;

/** The most tokens that are worth packing for a model, of which every one's row is read or the last one's alone. */
export function tokensOfBatch(
  { info }: Model,
  { layers, everyToken }: { layers: readonly number[]; everyToken: boolean },
): number {
  const onGpu = info.devices.some(({ host }) => !host);
  const usual = onGpu ? batchTokens.gpu : batchTokens.processor;
  const everyOutput = everyToken && layers.includes(info.nLayer - 1);
  return everyOutput ? Math.max(64, Math.min(usual, Math.floor(batchLogits / info.nVocab))) : usual;
}

/** The context whose batches hold the longest of some texts, and `most` tokens of shorter ones. */
export function packedContext(texts: { count: number; tokens: number; longest: number }, most: number) {
  const nBatch = Math.max(texts.longest, Math.min(texts.tokens, most));
  return { nCtx: nBatch, nBatch, maxSequences: Math.min(texts.count, batchSequences) };
}
