import { open } from "node:fs/promises";
import { type ByteSource, GgufHeaderReader, type GgufValue } from "../formats/gguf.js";

/** Metadata of a GGUF file. */
export interface GgufHeader {
  architecture: string;
  /** Name given by its author; may be empty. */
  name: string;
  /** Elements of all tensors in this file. */
  parameters: number;
  /** Short name of the file type, as in file names: `Q4_K_M`; null if unknown. */
  quantization: string | null;
  /** Context length in training, in tokens. */
  context: number | null;
  blocks: number | null;
  /** Hidden size. */
  hidden: number | null;
}

/** llama.cpp's file types (llama.h, llama_ftype) with their names in file names. */
// biome-ignore format: a table
const fileTypes: Record<number, string> = {
  0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
  12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS",
  20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M",
  28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
  39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
};

/**
 * Reads the header of a GGUF file, without the weights.
 * @throws FormatError if it is not a GGUF file, or its header is truncated or damaged
 */
export async function readGgufHeader(path: string): Promise<GgufHeader> {
  return fromFile(path, read);
}

/** Runs a reader on a file. */
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

/**
 * Number of blocks of a GGUF model. Reads only up to that field, which comes before the vocabulary.
 * @returns null if the file does not contain it
 * @throws FormatError as readGgufHeader does
 */
export async function readBlockCount(source: ByteSource): Promise<number | null> {
  for await (const [key, value] of (await GgufHeaderReader.open(source)).pairs()) {
    if (key.endsWith(".block_count")) return typeof value === "number" ? value : null;
  }
  return null;
}

async function read(source: ByteSource): Promise<GgufHeader> {
  const reader = await GgufHeaderReader.open(source);
  const values = new Map<string, GgufValue>();
  for await (const [key, value] of reader.pairs()) if (value !== undefined) values.set(key, value);
  let parameters = 0;
  for await (const { length } of reader.tensors()) parameters += length;
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

/** A weight and its place. */
export interface PlacedWeight {
  path: string;
  /** Bytes from the start of the file. */
  offset: number;
  /** ggml's number. */
  type: number;
  /** ggml's order: the length of a row first. */
  shape: number[];
}

/**
 * The metadata and weights of a model's files, which are several for a split set.
 * @throws FormatError as readGgufHeader does
 */
export async function readWeightPlaces(
  paths: readonly string[],
): Promise<{ metadata: Map<string, GgufValue>; weights: Map<string, PlacedWeight> }> {
  const metadata = new Map<string, GgufValue>();
  const weights = new Map<string, PlacedWeight>();
  for (const path of paths) {
    await fromFile(path, async (source) => {
      const reader = await GgufHeaderReader.open(source);
      for await (const [key, value] of reader.pairs()) {
        if (value !== undefined && !metadata.has(key)) metadata.set(key, value);
      }
      const found = [];
      for await (const tensor of reader.tensors()) found.push(tensor);
      const alignment = Number(metadata.get("general.alignment") ?? 32);
      const start = Math.ceil(reader.position / alignment) * alignment;
      for (const { name, offset, type, shape } of found) {
        weights.set(name, { path, offset: start + offset, type, shape });
      }
    });
  }
  return { metadata, weights };
}
