import { type FileHandle, open, rename, rm } from "node:fs/promises";

/** A metadata value: integers are written as uint32, other numbers as float32. */
export type Metadata = Record<
  string,
  string | number | boolean | string[] | Int32Array | Float32Array | { f32: number }
>;

/** A tensor: dimensions in ggml's order (fastest first), its type, and its bytes when they are due. */
export interface TensorSpec {
  name: string;
  dimensions: number[];
  type: TensorType;
  bytes: (size: number) => Buffer;
}

const types = {
  f32: { id: 0, block: 1, bytes: 4 },
  f16: { id: 1, block: 1, bytes: 2 },
  q4_0: { id: 2, block: 32, bytes: 18 },
  q4_1: { id: 3, block: 32, bytes: 20 },
  q5_0: { id: 6, block: 32, bytes: 22 },
  q5_1: { id: 7, block: 32, bytes: 24 },
  q8_0: { id: 8, block: 32, bytes: 34 },
  q4_K: { id: 12, block: 256, bytes: 144 },
  q6_K: { id: 14, block: 256, bytes: 210 },
} as const;
export type TensorType = keyof typeof types;

const alignment = 32;
const padded = (size: number) => Math.ceil(size / alignment) * alignment;

/** Writes a GGUF v3 file, tensor by tensor; the file appears under its name only when it is whole. */
export async function writeGguf(path: string, metadata: Metadata, tensors: TensorSpec[]): Promise<void> {
  const temporary = `${path}.${process.pid}.part`;
  const file = await open(temporary, "w");
  try {
    const sizes = tensors.map(sizeOf);
    await file.write(header(metadata, tensors, sizes));
    for (const [index, tensor] of tensors.entries()) {
      await writePadded(file, tensor.bytes(sizes[index] as number));
    }
    await file.sync();
    await file.close();
    await rename(temporary, path);
  } catch (error) {
    await file.close();
    await rm(temporary, { force: true });
    throw error;
  }
}

function sizeOf({ dimensions, type }: TensorSpec): number {
  const { block, bytes } = types[type];
  return (dimensions.reduce((product, n) => product * n, 1) / block) * bytes;
}

async function writePadded(file: FileHandle, bytes: Buffer): Promise<void> {
  await file.write(bytes);
  const rest = padded(bytes.length) - bytes.length;
  if (rest > 0) await file.write(Buffer.alloc(rest));
}

function header(metadata: Metadata, tensors: TensorSpec[], sizes: number[]): Buffer {
  const entries = Object.entries(metadata);
  const parts = [Buffer.from("GGUF"), u32(3), u64(tensors.length), u64(entries.length)];
  for (const [key, value] of entries) {
    parts.push(text(key));
    for (const part of typed(value)) parts.push(part);
  }
  let offset = 0;
  for (const [index, { name, dimensions, type }] of tensors.entries()) {
    parts.push(text(name), u32(dimensions.length), ...dimensions.map(u64), u32(types[type].id), u64(offset));
    offset += padded(sizes[index] as number);
  }
  const whole = Buffer.concat(parts);
  return Buffer.concat([whole, Buffer.alloc(padded(whole.length) - whole.length)]);
}

/** Type tag and bytes of a metadata value. */
function typed(value: Metadata[string]): Buffer[] {
  if (typeof value === "string") return [u32(8), text(value)];
  if (typeof value === "boolean") return [u32(7), Buffer.of(value ? 1 : 0)];
  if (typeof value === "number") return [u32(4), u32(value)];
  if (value instanceof Int32Array || value instanceof Float32Array) {
    const type = value instanceof Int32Array ? 5 : 6;
    return [
      u32(9),
      u32(type),
      u64(value.length),
      Buffer.from(value.buffer, value.byteOffset, value.byteLength),
    ];
  }
  if (Array.isArray(value)) return [u32(9), u32(8), u64(value.length), ...value.map(text)];
  const float = Buffer.alloc(4);
  float.writeFloatLE(value.f32);
  return [u32(6), float];
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}
