import { open } from "node:fs/promises";
import { floatsOf } from "../../src/formats/float.js";
import { GgufHeaderReader, type GgufTensor } from "../../src/formats/gguf.js";

const alignment = 32;
/** ggml's numbers of types, and how many bytes and numbers a block of each has. */
const layouts = {
  0: { bytes: 4, numbers: 1, read: (block: Uint8Array) => floatsOf("F32", block) as Float32Array },
  1: { bytes: 2, numbers: 1, read: (block: Uint8Array) => floatsOf("F16", block) as Float32Array },
  8: { bytes: 34, numbers: 32, read: eightBits },
  30: { bytes: 2, numbers: 1, read: (block: Uint8Array) => floatsOf("BF16", block) as Float32Array },
} as const;

/** Q8_0: a factor in binary16 and 32 integers, each product rounded to float32. */
function eightBits(rows: Uint8Array): Float32Array {
  const out = new Float32Array((rows.length / 34) * 32);
  for (let block = 0; block * 34 < rows.length; block++) {
    const [factor] = floatsOf("F16", rows.subarray(block * 34, block * 34 + 2)) as Float32Array;
    const whole = Int8Array.from(rows.subarray(block * 34 + 2, block * 34 + 34));
    for (const [i, value] of whole.entries()) out[block * 32 + i] = (factor as number) * value;
  }
  return out;
}

/** The embedding of a token, float32, as a model's file has it. */
export async function tokenEmbedding(path: string, token: number, width: number): Promise<Float32Array> {
  const file = await open(path);
  try {
    const source = {
      size: (await file.stat()).size,
      read: async (buffer: Buffer, position: number) =>
        (await file.read(buffer, 0, buffer.length, position)).bytesRead,
    };
    const header = await GgufHeaderReader.open(source);
    for await (const _ of header.pairs());
    let found: GgufTensor | undefined;
    for await (const tensor of header.tensors()) if (tensor.name === "token_embd.weight") found = tensor;
    const layout = layouts[found?.type as keyof typeof layouts];
    if (found === undefined || layout === undefined)
      throw new Error(`${path}: type ${found?.type} is not read.`);
    const data = Math.ceil(header.position / alignment) * alignment;
    const row = Buffer.alloc((width / layout.numbers) * layout.bytes);
    await source.read(row, data + found.offset + token * row.length);
    return layout.read(row);
  } finally {
    await file.close();
  }
}
