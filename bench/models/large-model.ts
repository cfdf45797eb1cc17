import { randomFillSync } from "node:crypto";
import { byteTokenizer } from "./byte-tokenizer.js";
import { type Metadata, type TensorSpec, type TensorType, writeGguf } from "./gguf-writer.js";
import { randomQ8 } from "./random-model.js";

/** Llama 3.1 8B's shape. */
export const eightBillion = {
  ...{ blocks: 32, hidden: 4096, feedForward: 14_336, heads: 32, kvHeads: 8, vocabulary: 128_256 },
};

export type LargeType = "q8_0" | "q4_k_m";

/** Bits of float16 scales, which give a mean of 0 and a deviation of about 1/64 with random bytes: 2^-14, 7.5 times that, and 1.1e-5. */
const scale = { q4_K: [0x0400, 0x0f80], q6_K: [0x00bf] } as const;

/** Blocks of random weights: 4 bits (a scale and a minimum, each with six bits per part), or 6 bits. */
function random(type: "q4_K" | "q6_K", size: number): Buffer {
  const bytes = randomFillSync(Buffer.allocUnsafe(size));
  const block = type === "q4_K" ? 144 : 210;
  for (let at = 0; at < size; at += block) {
    if (type === "q4_K") {
      bytes.writeUInt16LE(scale.q4_K[0], at);
      bytes.writeUInt16LE(scale.q4_K[1], at + 2);
    } else {
      bytes.writeUInt16LE(scale.q6_K[0], at + 208);
    }
  }
  return bytes;
}

/**
 * Writes a model of Llama's architecture with random weights, in Q8_0 or in the types of Q4_K_M: values, half of ffn_down
 * and the head in Q6_K.
 */
export function writeLargeModel(
  path: string,
  shape: typeof eightBillion,
  form: LargeType = "q4_k_m",
): Promise<void> {
  const { blocks, hidden, feedForward, heads, kvHeads, vocabulary } = shape;
  const kv = (hidden / heads) * kvHeads;
  const matrix = (
    name: string,
    inner: number,
    outer: number,
    type: "q4_K" | "q6_K" = "q4_K",
  ): TensorSpec => ({
    ...{ name, dimensions: [inner, outer], type: form === "q8_0" ? form : (type as TensorType) },
    bytes: (size) => (form === "q8_0" ? randomQ8(size, 1 / Math.sqrt(inner)) : random(type, size)),
  });
  const ones = (name: string): TensorSpec => ({
    ...{ name, dimensions: [hidden], type: "f32" },
    bytes: () => Buffer.from(new Float32Array(hidden).fill(1).buffer),
  });
  const metadata: Metadata = {
    ...{ "general.architecture": "llama", "general.name": "random weights" },
    "general.file_type": form === "q8_0" ? 7 : 15,
    "llama.block_count": blocks,
    "llama.context_length": 8192,
    "llama.embedding_length": hidden,
    "llama.feed_forward_length": feedForward,
    "llama.attention.head_count": heads,
    "llama.attention.head_count_kv": kvHeads,
    "llama.rope.dimension_count": hidden / heads,
    "llama.attention.layer_norm_rms_epsilon": { f32: 1e-5 },
    "llama.rope.freq_base": { f32: 500_000 },
    ...byteTokenizer(vocabulary),
  };
  const tensors = [
    matrix("token_embd.weight", hidden, vocabulary),
    ones("output_norm.weight"),
    matrix("output.weight", hidden, vocabulary, "q6_K"),
    ...Array.from({ length: blocks }, (_, i) => {
      const blk = `blk.${i}`;
      const better = i % 2 === 0 ? "q6_K" : "q4_K";
      return [
        ones(`${blk}.attn_norm.weight`),
        ones(`${blk}.ffn_norm.weight`),
        matrix(`${blk}.attn_q.weight`, hidden, hidden),
        matrix(`${blk}.attn_k.weight`, hidden, kv),
        matrix(`${blk}.attn_v.weight`, hidden, kv, better),
        matrix(`${blk}.attn_output.weight`, hidden, hidden),
        matrix(`${blk}.ffn_gate.weight`, hidden, feedForward),
        matrix(`${blk}.ffn_up.weight`, hidden, feedForward),
        matrix(`${blk}.ffn_down.weight`, feedForward, hidden, better),
      ];
    }).flat(),
  ];
  return writeGguf(path, metadata, tensors);
}
