/**
 * A model of a real one's shape with random weights, to measure with where nothing can be downloaded:
 *   node --import tsx bench/models/random-model.ts [q8_0|f16]
 * prints its path. It is written once, into tapline's cache.
 */
import { randomFillSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../../scripts/build/source.js";
import { byteTokenizer } from "./byte-tokenizer.js";
import { type Metadata, type TensorSpec, type TensorType, writeGguf } from "./gguf-writer.js";

export type WeightType = "q8_0" | "f16";

/** Bytes of weights of about a standard deviation. */
export type Weights = (size: number, deviation: number) => Buffer;

/** Of a model with tied embeddings. */
export interface Shape {
  blocks: number;
  hidden: number;
  feedForward: number;
  heads: number;
  kvHeads: number;
  vocabulary: number;
}

/** Qwen2-0.5B's: 494 million parameters. */
const halfBillion: Shape = {
  blocks: 24,
  hidden: 896,
  feedForward: 4864,
  heads: 14,
  kvHeads: 2,
  vocabulary: 151_936,
};

/** Path of the model; makes it if it is not there. */
export async function randomModel(type: WeightType): Promise<string> {
  const folder = join(cacheFolder(process.env), "bench");
  const path = join(folder, `random-0.5b-${type}.gguf`);
  if (!existsSync(path)) {
    await mkdir(folder, { recursive: true });
    await writeRandomModel(path, type, halfBillion);
  }
  return path;
}

/** Another shape of the same architecture, and a little of it. */
export function writeRandomModel(path: string, type: WeightType, shape: Shape): Promise<void> {
  return writeModel(path, type, shape, random[type]);
}

/** The same with the given weights. */
export function writeModel(path: string, type: TensorType, shape: Shape, weights: Weights): Promise<void> {
  return writeGguf(path, metadata(type, shape), tensors(type, shape, weights));
}

/** llama.cpp's numbers for files of mostly one type. */
const fileTypes = {
  ...{ f32: 0, f16: 1, q4_0: 2, q4_1: 3, q8_0: 7, q5_0: 8, q5_1: 9 },
  ...{ q4_K: 15, q6_K: 18 },
} as const;

function metadata(type: TensorType, shape: Shape): Metadata {
  const { blocks, hidden, feedForward, heads, kvHeads } = shape;
  return {
    "general.architecture": "qwen2",
    "general.name": shape === halfBillion ? "random weights in the shape of 0.5B" : "random weights",
    "general.file_type": fileTypes[type],
    "qwen2.block_count": blocks,
    "qwen2.context_length": 32_768,
    "qwen2.embedding_length": hidden,
    "qwen2.feed_forward_length": feedForward,
    "qwen2.attention.head_count": heads,
    "qwen2.attention.head_count_kv": kvHeads,
    "qwen2.attention.layer_norm_rms_epsilon": { f32: 1e-6 },
    "qwen2.rope.freq_base": { f32: 1_000_000 },
    ...byteTokenizer(shape.vocabulary),
  };
}

function tensors(type: TensorType, shape: Shape, weights: Weights): TensorSpec[] {
  const { blocks, hidden, feedForward, heads, kvHeads, vocabulary: words } = shape;
  const kv = (hidden / heads) * kvHeads;
  const matrix = (name: string, inner: number, outer: number): TensorSpec => ({
    name,
    dimensions: [inner, outer],
    type,
    // About 1 / sqrt(inner): activations keep their size through the blocks.
    bytes: (size) => weights(size, 1 / Math.sqrt(inner)),
  });
  const vector = (name: string, length: number, value: number): TensorSpec => ({
    name,
    dimensions: [length],
    type: "f32",
    bytes: () => Buffer.from(new Float32Array(length).fill(value).buffer),
  });
  const all = [matrix("token_embd.weight", hidden, words), vector("output_norm.weight", hidden, 1)];
  for (let block = 0; block < blocks; block++) {
    const blk = `blk.${block}`;
    all.push(
      vector(`${blk}.attn_norm.weight`, hidden, 1),
      vector(`${blk}.ffn_norm.weight`, hidden, 1),
      matrix(`${blk}.attn_q.weight`, hidden, hidden),
      matrix(`${blk}.attn_k.weight`, hidden, kv),
      matrix(`${blk}.attn_v.weight`, hidden, kv),
      vector(`${blk}.attn_q.bias`, hidden, 0),
      vector(`${blk}.attn_k.bias`, kv, 0),
      vector(`${blk}.attn_v.bias`, kv, 0),
      matrix(`${blk}.attn_output.weight`, hidden, hidden),
      matrix(`${blk}.ffn_gate.weight`, hidden, feedForward),
      matrix(`${blk}.ffn_up.weight`, hidden, feedForward),
      matrix(`${blk}.ffn_down.weight`, feedForward, hidden),
    );
  }
  return all;
}

const random: Record<WeightType, Weights> = { q8_0: randomQ8, f16: randomF16 };

/** Blocks of 32 weights: a float16 scale, then 32 signed bytes, uniform. */
export function randomQ8(size: number, deviation: number): Buffer {
  const bytes = randomFillSync(Buffer.allocUnsafe(size));
  const scale = halfBits(deviation / 74); // a uniform signed byte has a standard deviation of 74
  for (let at = 0; at < size; at += 34) bytes.writeUInt16LE(scale, at);
  return bytes;
}

/** Float16 of random sign and mantissa in one binade: magnitudes between `low` and twice that. */
function randomF16(size: number, deviation: number): Buffer {
  const bytes = randomFillSync(Buffer.allocUnsafe(size));
  const exponent = halfBits(deviation / 1.5) & 0x7c00;
  for (let at = 0; at < size; at += 2) {
    bytes.writeUInt16LE((bytes.readUInt16LE(at) & 0x83ff) | exponent, at);
  }
  return bytes;
}

/** Float16 bits of a positive number in float16's normal range, truncated. */
function halfBits(value: number): number {
  const exponent = Math.floor(Math.log2(value));
  return ((exponent + 15) << 10) | Math.floor((value / 2 ** exponent - 1) * 1024);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const type = process.argv[2] ?? "q8_0";
  if (type !== "q8_0" && type !== "f16") throw new Error(`The type is q8_0 or f16, not ${type}.`);
  console.log(await randomModel(type));
}
