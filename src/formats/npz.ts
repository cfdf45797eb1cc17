import { crc32, inflateRawSync } from "node:zlib";
import { floatsOf, strided } from "./float.js";
import { FormatError, quoted } from "./format-error.js";
import type { Tensor } from "./safetensors.js";
import { damaged, localHeaderBytes, type ZipEntry, zipDataStart, zipDirectory, zipEntries } from "./zip.js";

/**
 * Reads the arrays of an .npz file, stored or deflated; numbers of 16 and 64 bits become float32.
 * @param most maximum bytes of all arrays together, unpacked
 * @throws FormatError
 */
export function decodeNpz(bytes: Uint8Array, most: number): Map<string, Tensor> {
  const files = [...npzFiles(bytes, most)].filter(([, data]) => textOf(data) === undefined);
  return new Map(files.map(([name, data]) => [name, readNpy(data, `${name}.npy`)]));
}

/** The single words of an .npz file, arrays of NumPy's type `<U` without a shape. @throws FormatError */
export function npzWords(bytes: Uint8Array, most: number): Record<string, string> {
  const words = [...npzFiles(bytes, most)].map(([name, data]) => [name, textOf(data)] as const);
  return Object.fromEntries(words.filter((word): word is [string, string] => word[1] !== undefined));
}

/** The text of an .npy file with one word: four bytes per character, padded with zeros. */
function textOf(data: Buffer): string | undefined {
  const header = data.toString("latin1", 0, 128);
  const length = Number(/'descr':\s*'<U(\d{1,3})'/.exec(header)?.[1] ?? Number.NaN);
  const start = data.length - 4 * length;
  if (Number.isNaN(length) || !/'shape':\s*\(\s*\)/.test(header) || start < 10) return undefined;
  const codes = Array.from({ length }, (_, i) => data.readUInt32LE(start + 4 * i));
  if (codes.some((code) => code > 0x10ffff)) return undefined;
  return String.fromCodePoint(...codes).replace(/\0+$/, "");
}

/**
 * The .npy files in an .npz file, stored or deflated, by the names of their arrays.
 * @param most maximum bytes of all of them together, unpacked
 * @throws FormatError
 */
export function npzFiles(bytes: Uint8Array, most: number): Map<string, Buffer> {
  const { start, count } = zipDirectory(bytes, ".npz");
  const files = new Map<string, Buffer>();
  let left = most;
  for (const entry of zipEntries(bytes.subarray(start), count, ".npz")) {
    if (entry.size > left) throw new FormatError(`The arrays of the .npz file have more than ${most} bytes.`);
    left -= entry.size;
    files.set(entry.name.replace(/\.npy$/, ""), entryData(bytes, entry));
  }
  return files;
}

function entryData(bytes: Uint8Array, entry: ZipEntry): Buffer {
  const { name, method, packed, size, crc, header } = entry;
  const from = zipDataStart(entry, bytes.subarray(header, header + localHeaderBytes), ".npz");
  if (from + packed > bytes.length) throw damaged(name, ".npz");
  const stored = Buffer.from(bytes.buffer, bytes.byteOffset + from, packed);
  let data = stored;
  if (method === 8) {
    try {
      data = inflateRawSync(stored, { maxOutputLength: Math.max(1, size) });
    } catch {
      throw damaged(name, ".npz");
    }
  } else if (method !== 0) {
    throw new FormatError(
      `${quoted(name)} in the .npz file is packed with method ${method}; 0 and 8 are supported.`,
    );
  }
  if (data.length !== size || crc32(data) !== crc) throw damaged(name, ".npz");
  return data;
}

const dtypes: Readonly<Record<string, string>> = { "<f4": "F32", "<f8": "F64", "<f2": "F16" };
const widths: Readonly<Record<string, number>> = { F32: 4, F64: 8, F16: 2 };

/** NumPy writes about a hundred. */
const headerBytes = 65_536;

/** (Format: NumPy NEP 1.) */
function readNpy(data: Buffer, name: string): Tensor {
  const refuse = (why: string) => new FormatError(`${quoted(name)} in the .npz file ${why}.`);
  if (data.length < 12 || data.toString("latin1", 0, 6) !== "\x93NUMPY") throw refuse("is not an array");
  const long = data[6] !== 1;
  const length = long ? data.readUInt32LE(8) : data.readUInt16LE(8);
  const start = (long ? 12 : 10) + length;
  if (start > data.length) throw refuse("is truncated");
  if (length > headerBytes)
    throw refuse(`has a header of ${length} bytes; at most ${headerBytes} are supported`);
  const header = data.toString("latin1", long ? 12 : 10, start);
  const descr = /'descr':\s*'([^']{1,8})'/.exec(header)?.[1] ?? "";
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(header)?.[1];
  const fortran = /'fortran_order':\s*(True|False)/.exec(header)?.[1];
  if (shape === undefined || fortran === undefined) throw refuse("lacks its shape or order");
  const dtype = dtypes[descr];
  if (dtype === undefined) {
    throw refuse(`is of type ${quoted(descr || "unknown")}; ${Object.keys(dtypes).join(", ")} are supported`);
  }
  const lengths = shape
    .split(",")
    .filter((part) => part.trim() !== "")
    .map(Number);
  const count = lengths.reduce((product, size) => product * size, 1);
  if (data.length - start !== count * (widths[dtype] as number))
    throw refuse("has a size that does not match its shape");
  const values = floatsOf(dtype, data.subarray(start)) as Float32Array;
  return { shape: lengths, data: fortran === "True" ? inCOrder(values, lengths) : values };
}

/** The numbers of an array in Fortran order (the first index is fastest), in C order. */
export function inCOrder<T extends Float32Array | Float64Array | Int32Array>(
  data: T,
  shape: readonly number[],
): T {
  const strides = shape.map((_, axis) => shape.slice(0, axis).reduce((product, size) => product * size, 1));
  return strided(data, data.slice() as T, shape, strides);
}
