import { FormatError, told } from "./format-error.js";

const magic = 0x46554747; // "GGUF"
const alignment = 32;
const uint32 = 4;
const string = 8;
const f32 = 0;
const mostTensors = 1024;
const mostKeys = 4096;

/**
 * Reads a control vector in llama.cpp's form: tensors `direction.<n>` [hidden], float32. llama.cpp adds `direction.N` to
 * the output of block N, counted from 0. (Format: ggml's gguf.md; llama.cpp's common_control_vector_load and
 * llama_adapter_cvec::apply.)
 * @throws FormatError, also for `direction.0`, which llama.cpp never applies
 */
export function decodeControlVector(bytes: Uint8Array): Map<number, Float32Array> {
  const cursor = new Cursor(bytes);
  if (cursor.uint32() !== magic) throw new FormatError("The file is no GGUF file.");
  const version = cursor.uint32();
  if (version !== 2 && version !== 3)
    throw new FormatError(`GGUF version ${version} is not read; 2 and 3 are.`);
  const tensors = cursor.count(mostTensors);
  let padding = alignment;
  let architecture = "";
  for (let keys = cursor.count(mostKeys); keys > 0; keys--) {
    const key = cursor.string();
    const type = cursor.uint32();
    if (key === "general.alignment" && type === uint32) padding = cursor.uint32() || alignment;
    else if (key === "general.architecture" && type === string) architecture = cursor.string();
    else cursor.skip(type);
  }
  if (architecture !== "controlvector") {
    throw new FormatError(`The GGUF file is of the architecture ${told(architecture)}, not a controlvector.`);
  }
  const places: { layer: number; length: number; offset: number }[] = [];
  for (let tensor = 0; tensor < tensors; tensor++) {
    const name = cursor.string();
    const dimensions = cursor.uint32();
    if (dimensions > 4) throw new FormatError(`The tensor ${told(name)} has ${dimensions} dimensions.`);
    let length = 1;
    for (let dimension = 0; dimension < dimensions; dimension++) length *= cursor.uint64();
    const type = cursor.uint32();
    const offset = cursor.uint64();
    const layer = Number(/^direction\.(\d{1,3})$/.exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(layer)) throw new FormatError(`The tensor ${told(name)} is no direction.<layer>.`);
    if (type !== f32) throw new FormatError(`${name} is not float32.`);
    if (layer === 0) {
      throw new FormatError(
        "direction.0 is applied by nobody: llama.cpp begins at layer 1. Renumber it or leave it out.",
      );
    }
    places.push({ layer, length, offset });
  }
  const start = Math.ceil(cursor.at / padding) * padding;
  return new Map(
    places.map(({ layer, length, offset }) => [
      layer,
      cursor.floats(start + offset, length, `direction.${layer}`),
    ]),
  );
}

/**
 * Writes a control vector that llama.cpp's `--control-vector` takes.
 * @throws FormatError for layer 0, which that form cannot say
 */
export function encodeControlVector(layers: ReadonlyMap<number, Float32Array>, modelHint: string): Buffer {
  if (layers.has(0)) {
    throw new FormatError("Layer 0 cannot be written as a control vector: llama.cpp begins at layer 1.");
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
    u32(string);
    text(value);
  }
  text("controlvector.layer_count");
  u32(uint32);
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

class Cursor {
  at = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  uint64(): number {
    const value = Number(this.#view.getBigUint64(this.#take(8), true));
    if (!Number.isSafeInteger(value)) throw cut();
    return value;
  }

  count(most: number): number {
    const value = this.uint64();
    if (value > most)
      throw new FormatError(`The GGUF file names ${value} entries; at most ${most} are read.`);
    return value;
  }

  string(): string {
    const length = this.uint64();
    const start = this.#take(length);
    return new TextDecoder().decode(this.#bytes.subarray(start, start + length));
  }

  floats(start: number, length: number, name: string): Float32Array {
    if (start + length * 4 > this.#bytes.length) throw new FormatError(`${name} does not lie in the file.`);
    return Float32Array.from({ length }, (_, index) => this.#view.getFloat32(start + index * 4, true));
  }

  skip(type: number): void {
    const widths = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
    if (type === string) {
      this.#take(this.uint64());
    } else if (type === 9) {
      const of = this.uint32();
      for (let left = this.count(1_000_000); left > 0; left--) this.skip(of);
    } else if (widths[type]) {
      this.#take(widths[type]);
    } else {
      throw new FormatError(`The GGUF file has a value of unknown type ${type}.`);
    }
  }

  #take(length: number): number {
    const start = this.at;
    if (start + length > this.#bytes.length) throw cut();
    this.at += length;
    return start;
  }
}

function cut(): FormatError {
  return new FormatError("The GGUF file is cut off.");
}
