import { byteTokenizer } from "../../../bench/models/byte-tokenizer.js";
import { type TensorSpec, writeGguf } from "../../../bench/models/gguf-writer.js";
import { TestRandom } from "../../support/random.js";

const hidden = 32;
const head = 16;
const feedForward = 32;
const blocks = 2;
const vocabulary = 320;

function values(length: number, seed: number, scale: number): () => Buffer {
  return () => {
    const random = new TestRandom(seed);
    return Buffer.from(Float32Array.from({ length }, () => (random.uniform() - 0.5) * scale).buffer);
  };
}

const matrix = (name: string, inner: number, outer: number, scale = 0.5): TensorSpec => ({
  name,
  dimensions: [inner, outer],
  type: "f32",
  bytes: values(
    inner * outer,
    [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0),
    scale,
  ),
});
const ones = (name: string, length: number): TensorSpec => ({
  name,
  dimensions: [length],
  type: "f32",
  bytes: () => Buffer.from(new Float32Array(length).fill(1).buffer),
});

export interface TinyModel {
  /** What every weight of the blocks' last matrices is, in place of random ones. */
  broken?: number;
}

/** A qwen3 of random weights, a few kilobytes. */
export async function writeTinyModel(path: string, { broken }: TinyModel = {}): Promise<void> {
  const all = [matrix("token_embd.weight", hidden, vocabulary), ones("output_norm.weight", hidden)];
  for (let block = 0; block < blocks; block++) {
    const blk = `blk.${block}`;
    all.push(
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
      broken === undefined
        ? matrix(`${blk}.ffn_down.weight`, feedForward, hidden)
        : {
            name: `${blk}.ffn_down.weight`,
            dimensions: [feedForward, hidden],
            type: "f32",
            bytes: () => Buffer.from(new Float32Array(feedForward * hidden).fill(broken).buffer),
          },
    );
  }
  await writeGguf(
    path,
    {
      "general.architecture": "qwen3",
      "general.file_type": 0,
      "qwen3.block_count": blocks,
      "qwen3.context_length": 512,
      "qwen3.embedding_length": hidden,
      "qwen3.feed_forward_length": feedForward,
      "qwen3.attention.head_count": 1,
      "qwen3.attention.head_count_kv": 1,
      "qwen3.attention.key_length": head,
      "qwen3.attention.value_length": head,
      "qwen3.attention.layer_norm_rms_epsilon": { f32: 1e-6 },
      "qwen3.rope.freq_base": { f32: 10_000 },
      ...byteTokenizer(vocabulary),
    },
    all,
  );
}
