import { FormatError, quoted } from "./format-error.js";
import { GgufHeaderReader, ggufTypes, sourceOf } from "./gguf.js";

const magic = 0x46554747; // "GGUF"
const alignment = 32;
const f32 = 0;
const mostTensors = 1024;
const mostKeys = 4096;

/**
 * Reads a control vector in llama.cpp's format: tensors `direction.<n>` [hidden], float32. llama.cpp adds
 * `direction.N` to the output of block N, counted from 0. (Format: ggml's gguf.md; llama.cpp's
 * common_control_vector_load and llama_adapter_cvec::apply.)
 * @throws FormatError, also for `direction.0`, which llama.cpp never applies
 */
export async function decodeControlVector(bytes: Uint8Array): Promise<Map<number, Float32Array>> {
  const reader = await GgufHeaderReader.open(sourceOf(bytes));
  atMost(reader.counts.tensors, mostTensors);
  atMost(reader.counts.pairs, mostKeys);
  let padding = alignment;
  let architecture = "";
  for await (const [key, value] of reader.pairs()) {
    if (key === "general.alignment") padding = Number(value) || alignment;
    if (key === "general.architecture") architecture = String(value);
  }
  if (architecture !== "controlvector") {
    throw new FormatError(`The GGUF file has the architecture ${quoted(architecture)}, not controlvector.`);
  }
  const places: { layer: number; length: number; offset: number }[] = [];
  for await (const { name, length, type, offset } of reader.tensors()) {
    const layer = Number(/^direction\.(\d{1,3})$/.exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(layer))
      throw new FormatError(`The tensor name ${quoted(name)} does not match direction.<layer>.`);
    if (type !== f32) throw new FormatError(`${name} is not float32.`);
    if (layer === 0) {
      throw new FormatError(
        "llama.cpp never applies direction.0, because it starts at layer 1. Renumber or remove it.",
      );
    }
    places.push({ layer, length, offset });
  }
  const start = Math.ceil(reader.position / padding) * padding;
  return new Map(
    places.map(({ layer, length, offset }) => [
      layer,
      floats(bytes, start + offset, length, `direction.${layer}`),
    ]),
  );
}

function atMost(entries: number, most: number): void {
  if (entries > most) {
    throw new FormatError(`The GGUF file lists ${entries} entries; at most ${most} are supported.`);
  }
}

function floats(bytes: Uint8Array, start: number, length: number, name: string): Float32Array {
  if (start + length * 4 > bytes.length) throw new FormatError(`${name} lies outside the file.`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length }, (_, index) => view.getFloat32(start + index * 4, true));
}

/**
 * Writes a control vector that llama.cpp's `--control-vector` takes.
 * @throws FormatError for layer 0, which the format cannot express
 */
export function encodeControlVector(layers: ReadonlyMap<number, Float32Array>, modelHint: string): Buffer {
  if (layers.has(0)) {
    throw new FormatError(
      "Layer 0 cannot be written as a control vector, because llama.cpp starts at layer 1.",
    );
  }
  const head: Buffer[] = [];
  const u32 = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    head.push(bytes);
  };
  const u64 = (value: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    head.push(bytes);
  };
  const text = (value: string) => {
    const bytes = Buffer.from(value);
    u64(bytes.length);
    head.push(bytes);
  };
  const entries = [...layers].sort(([a], [b]) => a - b);
  u32(magic);
  u32(3);
  u64(entries.length);
  u64(3);
  for (const [key, value] of [
    ["general.architecture", "controlvector"],
    ["controlvector.model_hint", modelHint],
  ] as const) {
    text(key);
    u32(ggufTypes.string);
    text(value);
  }
  text("controlvector.layer_count");
  u32(ggufTypes.uint32);
  u32(entries.length);
  let offset = 0;
  for (const [layer, data] of entries) {
    text(`direction.${layer}`);
    u32(1);
    u64(data.length);
    u32(f32);
    u64(offset);
    offset += Math.ceil(data.byteLength / alignment) * alignment;
  }
  const header = Buffer.concat(head);
  const parts: Buffer[] = [header, Buffer.alloc(padded(header.length))];
  for (const [, data] of entries) {
    parts.push(
      Buffer.from(data.buffer, data.byteOffset, data.byteLength),
      Buffer.alloc(padded(data.byteLength)),
    );
  }
  return Buffer.concat(parts);
}

function padded(length: number): number {
  return Math.ceil(length / alignment) * alignment - length;
}
