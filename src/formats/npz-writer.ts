import { crc32 } from "node:zlib";

/** A file to which pieces are written at given positions. */
export interface NpzFile {
  write(bytes: Uint8Array, position: number): Promise<void>;
}

/** One array of an .npz file in C order; an empty shape is a single number. */
export interface NpzArray {
  name: string;
  shape: readonly number[];
  /** float32 by default; `U` and a number for text of that many characters. */
  dtype?: "f4" | "f8" | "i4" | `U${number}`;
}

interface Entry extends NpzArray {
  /** Local header of the zip entry, with a CRC of zero until the last byte is known. */
  header: Buffer;
  npy: Buffer;
  /** File offsets of the zip entry and of its array data. */
  start: number;
  dataStart: number;
  dataBytes: number;
  written: number;
  crc: number;
}

/** Sizes and offsets of a zip archive without zip64 stay below this. */
const zipLimit = 0xffffffff;

/**
 * Writes an .npz whose array shapes are known in advance and whose data arrives in pieces, in any order: each piece
 * is written straight to its place in the file, so that no array is held in memory. Entries are stored, not
 * compressed. (Format: PKWARE APPNOTE 6.3, NumPy NEP 1.)
 */
export class NpzWriter {
  readonly #file: NpzFile;
  readonly #entries: Entry[] = [];
  readonly #directoryStart: number;

  /** @throws RangeError if the archive would need zip64: 4 GiB, far beyond the limits */
  constructor(file: NpzFile, arrays: readonly NpzArray[]) {
    this.#file = file;
    let offset = 0;
    for (const array of arrays) {
      const npy = npyHeader(array.dtype ?? "f4", array.shape);
      const header = Buffer.alloc(30 + Buffer.byteLength(`${array.name}.npy`));
      const characters = array.dtype?.startsWith("U") ? Number(array.dtype.slice(1)) : 1;
      const itemBytes = array.dtype === "f8" ? 8 : 4 * characters;
      const dataBytes = array.shape.reduce((product, length) => product * length, itemBytes);
      const dataStart = offset + header.length + npy.length;
      this.#entries.push({
        ...array,
        header,
        npy,
        start: offset,
        dataStart,
        dataBytes,
        written: 0,
        crc: crc32(npy),
      });
      offset = dataStart + dataBytes;
    }
    if (offset > zipLimit) throw new RangeError(`An .npz of ${offset} bytes would need zip64.`);
    this.#directoryStart = offset;
  }

  /** Appends values, in C order, to the array with this index. */
  async append(index: number, values: NpzNumbers): Promise<void> {
    const entry = this.#entries[index] as Entry;
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    if (entry.written + bytes.length > entry.dataBytes) {
      throw new RangeError(`${entry.name} holds ${entry.dataBytes} bytes; ${bytes.length} more do not fit.`);
    }
    entry.crc = crc32(bytes, entry.crc);
    await this.#file.write(bytes, entry.dataStart + entry.written);
    entry.written += bytes.length;
  }

  /** Writes the headers, once every array is complete. */
  async finish(): Promise<void> {
    const directory: Buffer[] = [];
    for (const entry of this.#entries) {
      if (entry.written !== entry.dataBytes) {
        throw new RangeError(`${entry.name} has ${entry.written} of ${entry.dataBytes} bytes.`);
      }
      const name = Buffer.from(`${entry.name}.npy`);
      const fields = commonFields(entry, name.length);
      entry.header.writeUInt32LE(0x04034b50, 0);
      fields.copy(entry.header, 4);
      name.copy(entry.header, 30);
      await this.#file.write(Buffer.concat([entry.header, entry.npy]), entry.start);
      const central = Buffer.alloc(46);
      central.writeUInt32LE(0x02014b50, 0);
      central.writeUInt16LE(20, 4); // made by: version 2.0, no attributes
      fields.copy(central, 6);
      central.writeUInt32LE(entry.start, 42);
      directory.push(central, name);
    }
    const listed = Buffer.concat(directory);
    const end = Buffer.alloc(22);
    end.writeUInt32LE(0x06054b50, 0);
    end.writeUInt16LE(this.#entries.length, 8);
    end.writeUInt16LE(this.#entries.length, 10);
    end.writeUInt32LE(listed.length, 12);
    end.writeUInt32LE(this.#directoryStart, 16);
    await this.#file.write(Buffer.concat([listed, end]), this.#directoryStart);
  }
}

type NpzNumbers = Float32Array | Float64Array | Int32Array;

/** Arrays in memory, for a writer; a string is a single word. */
export type NamedArrays = Record<string, { shape: readonly number[]; data: NpzNumbers } | string>;

/** NumPy stores text as code points. */
function asArray(given: NamedArrays[string]): Omit<NpzArray, "name"> & { data: NpzNumbers } {
  if (typeof given !== "string") {
    const { shape, data } = given;
    return {
      shape,
      data,
      dtype: data instanceof Float64Array ? "f8" : data instanceof Int32Array ? "i4" : "f4",
    };
  }
  const data = Int32Array.from([...given], (character) => character.codePointAt(0) as number);
  return { shape: [], data, dtype: `U${data.length}` };
}

/** Writes arrays that are in memory. */
export async function writeArrays(file: NpzFile, arrays: NamedArrays): Promise<void> {
  const entries = Object.entries(arrays).map(([name, given]) => ({ name, ...asArray(given) }));
  const npz = new NpzWriter(file, entries);
  for (const [index, { data }] of entries.entries()) await npz.append(index, data);
  await npz.finish();
}

/** A whole .npz file in memory. */
export async function encodeNpz(arrays: NamedArrays): Promise<Buffer> {
  const parts: { bytes: Buffer; position: number }[] = [];
  await writeArrays(
    {
      async write(bytes, position) {
        parts.push({ bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), position });
      },
    },
    arrays,
  );
  return Buffer.concat(parts.sort((a, b) => a.position - b.position).map(({ bytes }) => bytes));
}

/** The 26 bytes that local header and central directory share: from version needed to extra length. */
function commonFields(entry: Entry, nameLength: number): Buffer {
  const bytes = entry.npy.length + entry.dataBytes;
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(20, 0); // version needed
  fields.writeUInt16LE(0x21, 8); // 1 January 1980: the same result gives the same bytes
  fields.writeUInt32LE(entry.crc, 10);
  fields.writeUInt32LE(bytes, 14);
  fields.writeUInt32LE(bytes, 18);
  fields.writeUInt16LE(nameLength, 22);
  return fields;
}

/** Header of a version 1.0 .npy file in C order, padded to a multiple of 64 bytes. */
export function npyHeader(dtype: string, shape: readonly number[]): Buffer {
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const text = `{'descr': '<${dtype}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const padded = `${text.padEnd(Math.ceil((10 + text.length + 1) / 64) * 64 - 11)}\n`;
  const header = Buffer.alloc(10 + padded.length);
  header.write("\x93NUMPY\x01\x00", "latin1");
  header.writeUInt16LE(padded.length, 8);
  header.write(padded, 10, "latin1");
  return header;
}
