import { open } from "node:fs/promises";

/** What a GGUF file says about itself before its weights. */
export interface GgufHeader {
  architecture: string;
  /** Name that its maker gave it; empty where there is none. */
  name: string;
  /** Elements of all tensors in this file. */
  parameters: number;
  /** Short name of the file type, as in file names: `Q4_K_M`; null where the file does not say. */
  quantization: string | null;
  /** Tokens that the model was trained to attend to. */
  context: number | null;
  blocks: number | null;
  /** Hidden size. */
  hidden: number | null;
}

/** llama.cpp's file types (llama.h, llama_ftype) under the names that files carry. */
// biome-ignore format: a table
const fileTypes: Record<number, string> = {
  0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
  12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS",
  20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M",
  28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
  39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
};

/** Bytes of the scalar types, by their number in the format; 8 is a string and 9 an array. */
const scalarBytes: Record<number, number> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
};

/** A file that is no GGUF, or one that is cut off or damaged within its header. */
export class BadHeader extends Error {}

/**
 * Reads the header of a GGUF file (versions 2 and 3, little-endian), nothing of the weights.
 * @throws BadHeader
 */
export async function readGgufHeader(path: string): Promise<GgufHeader> {
  return fromFile(path, (source) => read(new Cursor(source)));
}

/** Hands a file's bytes to a reader. */
export async function fromFile<T>(path: string, reader: (source: ByteSource) => Promise<T>): Promise<T> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    return await reader({
      size,
      read: async (buffer, position) => (await file.read(buffer, 0, buffer.length, position)).bytesRead,
    });
  } finally {
    await file.close();
  }
}

/** Bytes that a header is read from: a file, or one on its way from the hub. */
export interface ByteSource {
  readonly size: number;
  /** Fills the buffer from `position` on. @returns how many bytes it got, fewer only where the source ends */
  read(buffer: Buffer, position: number): Promise<number>;
}

/**
 * How many blocks the model of a GGUF has, read no further than that: it stands before the vocabulary.
 * @returns null where the file does not say
 * @throws BadHeader
 */
export async function readBlockCount(source: ByteSource): Promise<number | null> {
  const cursor = new Cursor(source);
  const { pairs } = await readStart(cursor);
  for (let i = 0; i < pairs; i++) {
    const key = await cursor.text();
    const value = await cursor.value(await cursor.number(4));
    if (key.endsWith(".block_count")) return typeof value === "number" ? value : null;
  }
  return null;
}

async function readStart(cursor: Cursor): Promise<{ tensors: number; pairs: number }> {
  const magic = await cursor.take(4);
  const version = await cursor.number(4);
  if (magic.toString("latin1") !== "GGUF" || version < 2 || version > 3) throw new BadHeader();
  return { tensors: await cursor.number(8), pairs: await cursor.number(8) };
}

async function read(cursor: Cursor): Promise<GgufHeader> {
  const { tensors, pairs } = await readStart(cursor);
  const values = new Map<string, string | number>();
  for (let i = 0; i < pairs; i++) {
    const key = await cursor.text();
    const value = await cursor.value(await cursor.number(4));
    if (value !== undefined) values.set(key, value);
  }
  let parameters = 0;
  for (let i = 0; i < tensors; i++) {
    await cursor.text();
    const dimensions = await cursor.number(4);
    if (dimensions > mostDimensions) throw new BadHeader();
    let elements = 1;
    for (let d = 0; d < dimensions; d++) elements *= await cursor.number(8);
    parameters += elements;
    await cursor.skip(4 + 8); // type and offset
  }
  const text = (key: string) => String(values.get(key) ?? "");
  const architecture = text("general.architecture");
  const count = (key: string) => {
    const value = values.get(`${architecture}.${key}`);
    return typeof value === "number" ? value : null;
  };
  return {
    architecture,
    name: text("general.name"),
    parameters,
    quantization: fileTypes[Number(values.get("general.file_type") ?? -1)] ?? null,
    context: count("context_length"),
    blocks: count("block_count"),
    hidden: count("embedding_length"),
  };
}

const blockBytes = 1 << 20;
/** No key, name or template is longer; a damaged length could fill the memory before the file ends. */
const longestText = 1 << 26;
/** ggml's tensors have no more. */
const mostDimensions = 4;

/** Reads a source from its start in blocks; what is asked for beyond its end is damage. */
class Cursor {
  readonly #source: ByteSource;
  #block: Buffer = Buffer.alloc(0);
  /** Position of the block in the file, and of the next byte in the block. */
  #start = 0;
  #at = 0;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  async take(bytes: number): Promise<Buffer> {
    if (this.#at + bytes > this.#block.length) await this.#fill(bytes);
    this.#at += bytes;
    return this.#block.subarray(this.#at - bytes, this.#at);
  }

  async skip(bytes: number): Promise<void> {
    if (this.#start + this.#at + bytes > this.#source.size) throw new BadHeader();
    this.#at += bytes; // beyond the block, the next take() reads there
  }

  async #fill(bytes: number): Promise<void> {
    const from = this.#start + this.#at;
    if (from + bytes > this.#source.size) throw new BadHeader();
    const block = Buffer.alloc(Math.min(Math.max(bytes, blockBytes), this.#source.size - from));
    const bytesRead = await this.#source.read(block, from);
    if (bytesRead < bytes) throw new BadHeader();
    this.#block = block.subarray(0, bytesRead);
    this.#start = from;
    this.#at = 0;
  }

  async number(bytes: 4 | 8): Promise<number> {
    const buffer = await this.take(bytes);
    const value = bytes === 4 ? buffer.readUInt32LE() : Number(buffer.readBigUInt64LE());
    if (!Number.isSafeInteger(value)) throw new BadHeader();
    return value;
  }

  async text(): Promise<string> {
    const length = await this.number(8);
    if (length > longestText) throw new BadHeader();
    return (await this.take(length)).toString("utf8");
  }

  /** A text or a whole number; everything else is passed over. */
  async value(type: number): Promise<string | number | undefined> {
    if (type === 8) return this.text();
    if (type === 9) return this.#array();
    const bytes = scalarBytes[type];
    if (bytes === undefined) throw new BadHeader();
    if (type === 4 || type === 5) return (await this.take(4)).readInt32LE();
    if (type === 10 || type === 11) return Number((await this.take(8)).readBigInt64LE());
    await this.skip(bytes);
    return undefined;
  }

  async #array(): Promise<undefined> {
    const type = await this.number(4);
    const count = await this.number(8);
    const bytes = scalarBytes[type];
    if (bytes !== undefined) {
      await this.skip(bytes * count);
    } else if (type === 8) {
      for (let i = 0; i < count; i++) await this.skip(await this.number(8));
    } else {
      throw new BadHeader();
    }
  }
}
