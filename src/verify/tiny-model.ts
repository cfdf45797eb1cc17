import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { GgufHeaderReader, type GgufTensor, sourceOf } from "../formats/gguf.js";

/** ggml's numbers of the two types that the models' weights have. */
const [f32, f16] = [0, 1];
const alignment = 32;

/**
 * Whole numbers in [0, 2^32), from a seed: only integers are computed, so they are the same on every machine.
 */
export function randomIntegers(seed: string): () => number {
  let state = createHash("sha256").update(seed).digest().readUInt32LE();
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return (mixed ^ (mixed >>> 16)) >>> 0;
  };
}

/** Multiples of 2^-12 between -`most` and `most`, exact in float32; `most` is one, too. */
export function randomRow(seed: string, length: number, most: number): Float32Array {
  const random = randomIntegers(seed);
  const steps = most * 4096;
  return Float32Array.from({ length }, () => ((random() % (2 * steps + 1)) - steps) / 4096);
}

/** A model's weights by their tensor's name. */
function weightsOf({ name, length }: GgufTensor): Float32Array {
  const values = randomRow(name, length, 0.1875);
  if (name.includes("ssm_a")) return values.map((value) => -Math.abs(value) - 2 ** -12);
  // Norms multiply: around 1, as in trained models.
  return name.endsWith("norm.weight") ? values.map((value) => 1 + value) : values;
}

/**
 * Writes a model: a header that llama.cpp's test program wrote, and weights made from the tensors' names.
 * @param head the file up to its weights
 * @returns the file's SHA-256
 */
export async function writeTinyModel(head: string, path: string): Promise<string> {
  const bytes = await readFile(head);
  const reader = await GgufHeaderReader.open(sourceOf(bytes));
  for await (const _ of reader.pairs());
  const parts: Buffer[] = [bytes, Buffer.alloc(padding(bytes.length))];
  let size = 0;
  for await (const tensor of reader.tensors()) {
    if (tensor.offset !== size) throw new Error(`The weights of ${tensor.name} are not in order.`);
    const data = bytesOf(tensor, weightsOf(tensor));
    const room = padding(data.length);
    parts.push(data, Buffer.alloc(room));
    size += data.length + room;
  }
  const file = Buffer.concat(parts);
  await writeFile(path, file);
  return createHash("sha256").update(file).digest("hex");
}

const padding = (length: number) => Math.ceil(length / alignment) * alignment - length;

function bytesOf({ name, type }: GgufTensor, values: Float32Array): Buffer {
  if (type === f32) return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  if (type !== f16) throw new Error(`${name} has the type ${type}; the models' weights are F32 or F16.`);
  return Buffer.from(Uint16Array.from(values, halfBits).buffer);
}

/** A multiple of 2^-12 below 2 as a 16-bit float, which holds it rounded down to eleven digits. */
function halfBits(value: number): number {
  const sign = value < 0 ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size === 0) return sign;
  const exponent = Math.floor(Math.log2(size));
  return sign | ((exponent + 15) << 10) | Math.floor((size / 2 ** exponent - 1) * 1024);
}
