import { floatsOf } from "./float.js";
import { FormatError, quoted } from "./format-error.js";

export interface Tensor {
  shape: readonly number[];
  data: Float32Array;
}

/** A tensor to write. */
export interface WrittenTensor {
  shape: readonly number[];
  data: Float32Array | Int32Array;
}

export interface SafetensorsFile {
  tensors: Map<string, Tensor>;
  metadata: Record<string, string>;
}

const headerBytes = 16 * 1024 ** 2;

/** The head of a .safetensors file and the file offset of each tensor. */
export interface SafetensorsPlan {
  head: Buffer;
  starts: Map<string, number>;
  /** Of the whole file. */
  bytes: number;
}

const writtenWidths = { F32: 4, F16: 2, BF16: 2, I32: 4 } as const;
export type WrittenType = keyof typeof writtenWidths;

/**
 * Plans a .safetensors file: the length of a JSON header (8 bytes, little-endian), the header padded with spaces so
 * that the data starts at a multiple of 8, then the tensors in the given order. (Format: the safetensors README,
 * huggingface/safetensors.)
 */
export function planSafetensors(
  tensors: Readonly<Record<string, { dtype: WrittenType; shape: readonly number[] }>>,
  metadata: Readonly<Record<string, string>> = {},
): SafetensorsPlan {
  const header: Record<string, unknown> = { __metadata__: metadata };
  const starts = new Map<string, number>();
  let offset = 0;
  for (const [name, { dtype, shape }] of Object.entries(tensors)) {
    const bytes = shape.reduce((product, length) => product * length, 1) * writtenWidths[dtype];
    header[name] = { dtype, shape, data_offsets: [offset, offset + bytes] };
    starts.set(name, offset);
    offset += bytes;
  }
  const text = Buffer.from(JSON.stringify(header));
  const json = Buffer.alloc(Math.ceil(text.length / 8) * 8, " ");
  text.copy(json);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  const head = Buffer.concat([length, json]);
  for (const [name, start] of starts) starts.set(name, head.length + start);
  return { head, starts, bytes: head.length + offset };
}

/** The head of a .safetensors file of 32-bit numbers; the data follows in the given order. */
export function safetensorsHead(
  tensors: Readonly<Record<string, WrittenTensor>>,
  metadata: Readonly<Record<string, string>> = {},
): Buffer {
  const planned: Record<string, { dtype: WrittenType; shape: readonly number[] }> = {};
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    if (shape.reduce((product, length) => product * length, 1) !== data.length) {
      throw new RangeError(`${name} has ${data.length} values, its shape is [${shape.join(", ")}].`);
    }
    planned[name] = { dtype: data instanceof Int32Array ? "I32" : "F32", shape };
  }
  return planSafetensors(planned, metadata).head;
}

/** A whole .safetensors file of 32-bit numbers. */
export function encodeSafetensors(
  tensors: Readonly<Record<string, WrittenTensor>>,
  metadata: Readonly<Record<string, string>> = {},
): Buffer {
  const data = Object.values(tensors).map(({ data }) =>
    Buffer.from(data.buffer, data.byteOffset, data.byteLength),
  );
  return Buffer.concat([safetensorsHead(tensors, metadata), ...data]);
}

/** The place of a tensor in a .safetensors file, as file offsets from `start` to `end`. */
export interface TensorPlace {
  dtype: string;
  shape: readonly number[];
  start: number;
  end: number;
}

const widths: Readonly<Record<string, number>> = { F64: 8, F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4 };
const refuse = (why: string) => new FormatError(`The file is not a .safetensors file: ${why}.`);

/**
 * The size of a .safetensors file's head, from its first 8 bytes.
 * @param first those bytes; more may follow
 * @param size bytes of the whole file
 * @throws FormatError
 */
export function safetensorsHeadLength(first: Uint8Array, size: number): number {
  if (first.length < 8 || size < 10) throw refuse(`it has ${size} bytes`);
  const length = new DataView(first.buffer, first.byteOffset, 8).getBigUint64(0, true);
  if (Number(length) > size - 8) throw refuse(`its header of ${length} bytes is larger than the file`);
  if (length > BigInt(headerBytes)) {
    throw refuse(`its header of ${length} bytes exceeds the limit of ${headerBytes}`);
  }
  return 8 + Number(length);
}

/**
 * Reads the head of a .safetensors file, and checks that each tensor lies within the file and matches its shape.
 * @param head the first {@link safetensorsHeadLength} bytes
 * @param size bytes of the whole file
 * @throws FormatError
 */
export function readSafetensorsHead(
  head: Uint8Array,
  size: number,
): { places: Map<string, TensorPlace>; metadata: Record<string, string> } {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(head.subarray(8)));
  } catch {
    throw refuse("its header is not JSON");
  }
  if (typeof header !== "object" || header === null || Array.isArray(header)) {
    throw refuse("its header is not an object");
  }
  const { __metadata__: given = {}, ...entries } = header as Record<string, unknown>;
  const metadata: Record<string, string> = {};
  if (typeof given === "object" && given !== null) {
    for (const [key, value] of Object.entries(given)) if (typeof value === "string") metadata[key] = value;
  }
  const places = new Map<string, TensorPlace>();
  for (const [name, entry] of Object.entries(entries)) {
    places.set(name, placeOf(name, entry, head.length, size));
  }
  return { places, metadata };
}

/** Reads a .safetensors file; 16-bit and 64-bit numbers and integers are converted to float32. @throws FormatError */
export function decodeSafetensors(bytes: Uint8Array): SafetensorsFile {
  const head = bytes.subarray(0, safetensorsHeadLength(bytes, bytes.length));
  const { places, metadata } = readSafetensorsHead(head, bytes.length);
  const tensors = new Map<string, Tensor>();
  for (const [name, place] of places) {
    const data = bytes.subarray(place.start, place.end);
    tensors.set(name, { shape: place.shape, data: floatsOf(place.dtype, data) as Float32Array });
  }
  return { tensors, metadata };
}

function placeOf(name: string, entry: unknown, dataStart: number, size: number): TensorPlace {
  const what = `The tensor ${quoted(name)}`;
  const { dtype, shape, data_offsets: offsets } = (entry ?? {}) as Record<string, unknown>;
  const lengths = (value: unknown): value is number[] =>
    Array.isArray(value) && value.every((number) => Number.isSafeInteger(number) && number >= 0);
  if (!lengths(shape) || !lengths(offsets) || offsets.length !== 2) {
    throw new FormatError(`${what} lacks a valid shape or offsets.`);
  }
  const width = widths[String(dtype)];
  if (width === undefined) {
    throw new FormatError(
      `${what} is of type ${quoted(String(dtype))}; ${Object.keys(widths).join(", ")} are supported.`,
    );
  }
  const [start, end] = offsets as [number, number];
  const count = shape.reduce((product, length) => product * length, 1);
  if (start > end || end > size - dataStart || end - start !== count * width) {
    throw new FormatError(
      `${what} has offsets that do not match the file and its shape [${shape.join(", ")}].`,
    );
  }
  return { dtype: String(dtype), shape, start: dataStart + start, end: dataStart + end };
}
