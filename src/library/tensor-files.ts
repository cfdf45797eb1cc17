import { open, readFile, stat } from "node:fs/promises";
import type { TensorSource } from "../formats/dictionaries/index.js";
import { floatsOf } from "../formats/float.js";
import { FormatError } from "../formats/format-error.js";
import { decodeNpz } from "../formats/npz.js";
import { readSafetensorsHead, safetensorsHeadLength, type TensorPlace } from "../formats/safetensors.js";

/** An .npz is unpacked in memory as a whole. */
const unpackedBytes = 8 * 1024 ** 3;
const npzBytes = 2 * 1024 ** 3 - 1;

/** Arrays of a file, each read when it is asked for, and what the file says of itself. */
export type TensorFile = TensorSource & { metadata: Readonly<Record<string, string>> };

/**
 * The arrays of a .safetensors or .npz file.
 * @throws FormatError
 */
export async function openTensors(path: string): Promise<TensorFile> {
  if (path.endsWith(".npz")) return openNpz(path);
  if (!path.endsWith(".safetensors")) {
    throw new FormatError(`${path} is of no kind that is read; .safetensors and .npz are.`);
  }
  const { places, metadata } = await tensorPlaces(path);
  return {
    metadata,
    shapes: new Map([...places].map(([name, { shape }]) => [name, shape])),
    read: async (name) => {
      const place = places.get(name);
      if (place === undefined) throw new FormatError(`The file has no array ${name}.`);
      return floatsOf(place.dtype, await readBytes(path, place.start, place.end)) as Float32Array;
    },
  };
}

/** Where the tensors of a .safetensors file lie. @throws FormatError */
export async function tensorPlaces(
  path: string,
): Promise<{ places: Map<string, TensorPlace>; metadata: Record<string, string> }> {
  const { size } = await stat(path);
  const length = safetensorsHeadLength(await readBytes(path, 0, Math.min(8, size)), size);
  return readSafetensorsHead(await readBytes(path, 0, length), size);
}

/** Bytes of a file from `start` to `end`. @throws FormatError where it ends before */
export async function readBytes(path: string, start: number, end: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start);
  const file = await open(path);
  try {
    let at = 0;
    while (at < bytes.length) {
      const { bytesRead } = await file.read(bytes, at, Math.min(bytes.length - at, 2 ** 30), start + at);
      if (bytesRead === 0) throw new FormatError(`The file ends at byte ${start + at}, before ${end}.`);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
  return bytes;
}

async function openNpz(path: string): Promise<TensorFile> {
  const { size } = await stat(path);
  if (size > npzBytes)
    throw new FormatError(`The .npz file has ${size} bytes; at most ${npzBytes} are read.`);
  const arrays = decodeNpz(await readFile(path), unpackedBytes);
  return {
    metadata: {},
    shapes: new Map([...arrays].map(([name, { shape }]) => [name, shape])),
    read: async (name) => arrays.get(name)?.data ?? new Float32Array(),
  };
}
