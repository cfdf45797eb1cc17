import { randomFillSync } from "node:crypto";
import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { type TensorSpec, writeGguf } from "../../bench/models/gguf-writer.js";

/** Hidden size and blocks of {@link writeWideModel}: the widest that the contract speaks of, and little else. */
export const wide = { hidden: 8192, blocks: 8 } as const;

const head = 64;
const feedForward = 32;
const vocabulary = 320;

/**
 * A qwen3 of random weights with one small head a block: with a residual stream of 8192 50 MB, quick to compute. Its tokens
 * are bytes.
 */
export async function writeWideModel(
  path: string,
  { hidden, blocks }: { hidden: number; blocks: number } = wide,
): Promise<void> {
  const matrix = (name: string, inner: number, outer: number): TensorSpec => ({
    name,
    dimensions: [inner, outer],
    type: "f16",
    bytes: smallRandom,
  });
  const ones = (name: string, length: number): TensorSpec => ({
    name,
    dimensions: [length],
    type: "f32",
    bytes: () => Buffer.from(new Float32Array(length).fill(1).buffer),
  });
  const tensors = [matrix("token_embd.weight", hidden, vocabulary), ones("output_norm.weight", hidden)];
  for (let block = 0; block < blocks; block++) {
    const blk = `blk.${block}`;
    tensors.push(
      ones(`${blk}.attn_norm.weight`, hidden),
      ones(`${blk}.ffn_norm.weight`, hidden),
      ones(`${blk}.attn_q_norm.weight`, head),
      ones(`${blk}.attn_k_norm.weight`, head),
      matrix(`${blk}.attn_q.weight`, hidden, head),
      matrix(`${blk}.attn_k.weight`, hidden, head),
      matrix(`${blk}.attn_v.weight`, hidden, head),
      matrix(`${blk}.attn_output.weight`, head, hidden),
      matrix(`${blk}.ffn_gate.weight`, hidden, feedForward),
      matrix(`${blk}.ffn_up.weight`, hidden, feedForward),
      matrix(`${blk}.ffn_down.weight`, feedForward, hidden),
    );
  }
  const metadata = {
    "general.architecture": "qwen3",
    "general.file_type": 1,
    "qwen3.block_count": blocks,
    "qwen3.context_length": 4096,
    "qwen3.embedding_length": hidden,
    "qwen3.feed_forward_length": feedForward,
    "qwen3.attention.head_count": 1,
    "qwen3.attention.head_count_kv": 1,
    "qwen3.attention.key_length": head,
    "qwen3.attention.value_length": head,
    "qwen3.attention.layer_norm_rms_epsilon": { f32: 1e-6 },
    "qwen3.rope.freq_base": { f32: 10_000 },
    ...byteTokenizer(vocabulary),
  };
  await writeGguf(path, metadata, tensors);
}

/** Float16 of random sign and mantissa, magnitudes from 1/64 to 1/32. */
function smallRandom(size: number): Buffer {
  const bytes = randomFillSync(Buffer.allocUnsafe(size));
  for (let at = 0; at < size; at += 2) bytes.writeUInt16LE((bytes.readUInt16LE(at) & 0x83ff) | (9 << 10), at);
  return bytes;
}
