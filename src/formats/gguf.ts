import { FormatError } from "./format-error.js";

/** Bytes that a header is read from: a file, a download from the hub, or a buffer. */
export interface ByteSource {
  readonly size: number;
  /** Fills the buffer from `position` on. @returns how many bytes it got, fewer only where the source ends */
  read(buffer: Buffer, position: number): Promise<number>;
}

/** A source of bytes in memory. */
export function sourceOf(bytes: Uint8Array): ByteSource {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { size: whole.length, read: async (buffer, position) => whole.copy(buffer, 0, position) };
}

/** A file's description of one tensor. */
export interface GgufTensor {
  name: string;
  /** Elements. */
  length: number;
  /** ggml's order: the length of a row first. */
  shape: number[];
  /** ggml's number of its type; 0 is float32. */
  type: number;
  /** Bytes from the start of the tensor data. */
  offset: number;
}

export type GgufValue = string | number | boolean;

/** The format's numbers of the types used here. */
// biome-ignore format: a table
export const ggufTypes = {
  uint32: 4, int32: 5, float32: 6, flag: 7, string: 8, array: 9, uint64: 10, int64: 11, float64: 12,
} as const;

/** Bytes of the scalar types, by their number in the format. */
// biome-ignore format: a table
const scalarBytes: Record<number, number> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

/** Longest accepted text: a damaged length could otherwise exhaust the memory. */
const longestText = 1 << 26;
/** The maximum of ggml's tensors. */
const mostDimensions = 4;

/**
 * The header of a GGUF file (versions 2 and 3, little-endian; ggml's gguf.md), read sequentially and only as far as
 * requested: key-value pairs, then tensor descriptions, but no weights.
 */
export class GgufHeaderReader {
  private constructor(
    private readonly cursor: Cursor,
    /** The numbers of each that the file declares. */
    readonly counts: { tensors: number; pairs: number },
  ) {}

  /** @throws FormatError if it is not a GGUF file or has another version */
  static async open(source: ByteSource): Promise<GgufHeaderReader> {
    const cursor = new Cursor(source);
    const magic = await cursor.take(4);
    if (magic.toString("latin1") !== "GGUF") throw new FormatError("The file is not a GGUF file.");
    const version = await cursor.number(4);
    if (version !== 2 && version !== 3) {
      throw new FormatError(`GGUF version ${version} is not supported; 2 and 3 are.`);
    }
    const tensors = await cursor.number(8);
    return new GgufHeaderReader(cursor, { tensors, pairs: await cursor.number(8) });
  }

  /**
   * Strings, numbers and flags by key; arrays and small integers are undefined.
   * @throws FormatError if the file is truncated or invalid
   */
  async *pairs(): AsyncGenerator<[key: string, value: GgufValue | undefined]> {
    for (let left = this.counts.pairs; left > 0; left--) {
      const key = await this.cursor.text();
      yield [key, await this.cursor.value(await this.cursor.number(4))];
    }
  }

  /** Must be read after all pairs. @throws FormatError as pairs does */
  async *tensors(): AsyncGenerator<GgufTensor> {
    for (let left = this.counts.tensors; left > 0; left--) {
      const name = await this.cursor.text();
      const dimensions = await this.cursor.number(4);
      if (dimensions > mostDimensions) throw new FormatError(`A tensor has ${dimensions} dimensions.`);
      const shape: number[] = [];
      while (shape.length < dimensions) shape.push(await this.cursor.number(8));
      const length = shape.reduce((product, dimension) => product * dimension, 1);
      const type = await this.cursor.number(4);
      yield { name, length, shape, type, offset: await this.cursor.number(8) };
    }
  }

  /** Number of bytes read so far. */
  get position(): number {
    return this.cursor.position;
  }
}

const blockBytes = 1 << 20;

/** Reads a source from its start in blocks; reads beyond its end are errors. */
class Cursor {
  #block: Buffer = Buffer.alloc(0);
  /** Position of the block in the file, and of the next byte in the block. */
  #start = 0;
  #at = 0;

  constructor(private readonly source: ByteSource) {}

  get position(): number {
    return this.#start + this.#at;
  }

  async take(bytes: number): Promise<Buffer> {
    if (this.#at + bytes > this.#block.length) await this.#fill(bytes);
    this.#at += bytes;
    return this.#block.subarray(this.#at - bytes, this.#at);
  }

  #skip(bytes: number): void {
    if (this.position + bytes > this.source.size) throw cut();
    this.#at += bytes; // beyond the block, the next take() reads there
  }

  async #fill(bytes: number): Promise<void> {
    const from = this.position;
    if (from + bytes > this.source.size) throw cut();
    const block = Buffer.alloc(Math.min(Math.max(bytes, blockBytes), this.source.size - from));
    const bytesRead = await this.source.read(block, from);
    if (bytesRead < bytes) throw cut();
    this.#block = block.subarray(0, bytesRead);
    this.#start = from;
    this.#at = 0;
  }

  async number(bytes: 4 | 8): Promise<number> {
    const buffer = await this.take(bytes);
    const value = bytes === 4 ? buffer.readUInt32LE() : Number(buffer.readBigUInt64LE());
    if (!Number.isSafeInteger(value)) throw cut();
    return value;
  }

  async text(): Promise<string> {
    const length = await this.number(8);
    if (length > longestText) throw cut();
    return (await this.take(length)).toString("utf8");
  }

  /** A string, a number or a flag; other values are skipped. */
  async value(type: number): Promise<GgufValue | undefined> {
    switch (type) {
      case ggufTypes.string:
        return this.text();
      case ggufTypes.uint32:
        return this.number(4);
      case ggufTypes.int32:
        return (await this.take(4)).readInt32LE();
      case ggufTypes.uint64:
        return this.number(8);
      case ggufTypes.int64:
        return Number((await this.take(8)).readBigInt64LE());
      case ggufTypes.float32:
        return (await this.take(4)).readFloatLE();
      case ggufTypes.float64:
        return (await this.take(8)).readDoubleLE();
      case ggufTypes.flag:
        return (await this.take(1)).readUInt8() !== 0;
      case ggufTypes.array:
        return this.#array();
      default:
        this.#skip(bytesOf(type));
        return undefined;
    }
  }

  async #array(): Promise<undefined> {
    const type = await this.number(4);
    const count = await this.number(8);
    if (type !== ggufTypes.string) {
      this.#skip(bytesOf(type) * count);
      return undefined;
    }
    for (let left = count; left > 0; left--) this.#skip(await this.number(8));
    return undefined;
  }
}

function bytesOf(type: number): number {
  const bytes = scalarBytes[type];
  if (bytes === undefined) throw new FormatError(`The GGUF file has a value of unknown type ${type}.`);
  return bytes;
}

function cut(): FormatError {
  return new FormatError("The GGUF file is truncated.");
}
