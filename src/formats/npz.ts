import { crc32, inflateRawSync } from "node:zlib";
import { floatsOf } from "./float.js";
import { FormatError, told } from "./format-error.js";
import type { Tensor } from "./safetensors.js";

const endOfDirectory = 0x06054b50;
const directoryEntry = 0x02014b50;
const endBytes = 22;
const longestComment = 65_535;

/**
 * Reads the arrays of an .npz file, stored or deflated; numbers of 16 and 64 bits become float32.
 * @param most bytes that all arrays together may have, unpacked
 * @throws FormatError
 */
export function decodeNpz(bytes: Uint8Array, most: number): Map<string, Tensor> {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const refuse = (why: string) => new FormatError(`The file is no .npz file: ${why}.`);
  let end = file.length - endBytes;
  const first = Math.max(0, end - longestComment);
  while (end >= first && file.readUInt32LE(end) !== endOfDirectory) end--;
  if (end < first || end < 0) throw refuse("it has no directory");
  const arrays = new Map<string, Tensor>();
  let at = file.readUInt32LE(end + 16);
  let left = most;
  for (let count = file.readUInt16LE(end + 10); count > 0; count--) {
    if (at + 46 > file.length || file.readUInt32LE(at) !== directoryEntry)
      throw refuse("its directory is cut");
    const nameLength = file.readUInt16LE(at + 28);
    const name = file.toString("utf8", at + 46, at + 46 + nameLength);
    const size = file.readUInt32LE(at + 24);
    if (size > left) throw new FormatError(`The arrays of the .npz file have more than ${most} bytes.`);
    left -= size;
    const data = entryData(file, at, size, name);
    arrays.set(name.replace(/\.npy$/, ""), readNpy(data, name));
    at += 46 + nameLength + file.readUInt16LE(at + 30) + file.readUInt16LE(at + 32);
  }
  return arrays;
}

function entryData(file: Buffer, at: number, size: number, name: string): Buffer {
  const damaged = () => new FormatError(`${told(name)} in the .npz file is damaged.`);
  const method = file.readUInt16LE(at + 10);
  const packed = file.readUInt32LE(at + 20);
  const start = file.readUInt32LE(at + 42);
  if (start + 30 > file.length) throw damaged();
  const from = start + 30 + file.readUInt16LE(start + 26) + file.readUInt16LE(start + 28);
  if (from + packed > file.length) throw damaged();
  const stored = file.subarray(from, from + packed);
  let data = stored;
  if (method === 8) {
    try {
      data = inflateRawSync(stored, { maxOutputLength: Math.max(1, size) });
    } catch {
      throw damaged();
    }
  } else if (method !== 0) {
    throw new FormatError(`${told(name)} in the .npz file is packed by method ${method}; 0 and 8 are read.`);
  }
  if (data.length !== size || crc32(data) !== file.readUInt32LE(at + 16)) throw damaged();
  return data;
}

const dtypes: Readonly<Record<string, string>> = { "<f4": "F32", "<f8": "F64", "<f2": "F16" };
const widths: Readonly<Record<string, number>> = { F32: 4, F64: 8, F16: 2 };

/** (Format: NumPy NEP 1.) */
function readNpy(data: Buffer, name: string): Tensor {
  const refuse = (why: string) => new FormatError(`${told(name)} in the .npz file ${why}.`);
  if (data.length < 12 || data.toString("latin1", 0, 6) !== "\x93NUMPY") throw refuse("is no array");
  const long = data[6] !== 1;
  const length = long ? data.readUInt32LE(8) : data.readUInt16LE(8);
  const start = (long ? 12 : 10) + length;
  if (start > data.length) throw refuse("is cut");
  const header = data.toString("latin1", long ? 12 : 10, start);
  const descr = /'descr':\s*'([^']{1,8})'/.exec(header)?.[1] ?? "";
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(header)?.[1];
  if (shape === undefined || !/'fortran_order':\s*False/.test(header)) {
    throw refuse("is not in C order, or says no shape");
  }
  const dtype = dtypes[descr];
  if (dtype === undefined) {
    throw refuse(`is of type ${told(descr || "unknown")}; ${Object.keys(dtypes).join(", ")} are read`);
  }
  const lengths = shape
    .split(",")
    .filter((part) => part.trim() !== "")
    .map(Number);
  const count = lengths.reduce((product, size) => product * size, 1);
  if (data.length - start !== count * (widths[dtype] as number))
    throw refuse("has another size than its shape");
  return { shape: lengths, data: floatsOf(dtype, data.subarray(start)) as Float32Array };
}
