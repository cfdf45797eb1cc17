import { open, readFile, stat } from "node:fs/promises";
import type { TensorSource } from "../formats/dictionaries/index.js";
import { floatsOf } from "../formats/float.js";
import { FormatError, quoted } from "../formats/format-error.js";
import { decodeNpz } from "../formats/npz.js";
import { readSafetensorsHead, safetensorsHeadLength, type TensorPlace } from "../formats/safetensors.js";
import { gather, readTorchPickle, torchWidths } from "../formats/torch.js";
import {
  damaged,
  localHeaderBytes,
  type ZipEntry,
  zipDataStart,
  zipDirectory,
  zipEntries,
  zipTailBytes,
} from "../formats/zip.js";

/**
 * An .npz is unpacked in memory as a whole. Packed numbers are hardly smaller; zip bombs have a ratio of about a
 * thousand.
 */
const unpackedBytes = 8 * 1024 ** 3;
const unpackedTimes = 16;
const unpackedAnyway = 64 * 1024 ** 2;
const npzBytes = 2 * 1024 ** 3 - 1;

/** Arrays of a file, read on demand, and its metadata. */
export type TensorFile = TensorSource & { metadata: Readonly<Record<string, string>> };

/**
 * The arrays of a .safetensors, .npz or PyTorch file.
 * @throws FormatError
 */
export async function openTensors(path: string): Promise<TensorFile> {
  if (path.endsWith(".npz")) return openNpz(path);
  if (/\.pth?$/.test(path)) return openTorch(path);
  if (!path.endsWith(".safetensors")) {
    throw new FormatError(
      `${path} has an unsupported format; supported are .safetensors, .npz, .pt and .pth.`,
    );
  }
  const { places, metadata } = await tensorPlaces(path);
  const placeOf = (name: string) => {
    const place = places.get(name);
    if (place === undefined) throw new FormatError(`The file has no array ${name}.`);
    return place;
  };
  return {
    metadata,
    shapes: new Map([...places].map(([name, { shape }]) => [name, shape])),
    read: async (name) => {
      const { dtype, start, end } = placeOf(name);
      return floatsOf(dtype, await readBytes(path, start, end)) as Float32Array;
    },
    rows: async (name, from, last) => {
      const { dtype, start, end, shape } = placeOf(name);
      const each = (end - start) / (shape[0] as number);
      return floatsOf(dtype, await readBytes(path, start + from * each, start + last * each)) as Float32Array;
    },
  };
}

/** The places of the tensors in a .safetensors file. @throws FormatError */
export async function tensorPlaces(
  path: string,
): Promise<{ places: Map<string, TensorPlace>; metadata: Record<string, string> }> {
  const { size } = await stat(path);
  const length = safetensorsHeadLength(await readBytes(path, 0, Math.min(8, size)), size);
  return readSafetensorsHead(await readBytes(path, 0, length), size);
}

/** Bytes of a file from `start` to `end`. @throws FormatError if it ends before */ export async function readBytes(
  path: string,
  start: number,
  end: number,
): Promise<Uint8Array> {
  const file = await open(path);
  try {
    // A damaged directory may request gigabytes.
    const { size } = await file.stat();
    if (end > size) throw new FormatError(`The file ends at byte ${size}, before ${end}.`);
    const bytes = new Uint8Array(end - start);
    let at = 0;
    while (at < bytes.length) {
      const { bytesRead } = await file.read(bytes, at, Math.min(bytes.length - at, 2 ** 30), start + at);
      if (bytesRead === 0) throw new FormatError(`The file ends at byte ${start + at}, before ${end}.`);
      at += bytesRead;
    }
    return bytes;
  } finally {
    await file.close();
  }
}

async function openNpz(path: string): Promise<TensorFile> {
  const { size } = await stat(path);
  if (size > npzBytes) throw new FormatError(`The .npz file has ${size} bytes; the limit is ${npzBytes}.`);
  const most = Math.min(unpackedBytes, unpackedAnyway + unpackedTimes * size);
  const arrays = decodeNpz(await readFile(path), most);
  return {
    metadata: {},
    shapes: new Map([...arrays].map(([name, { shape }]) => [name, shape])),
    read: async (name) => arrays.get(name)?.data ?? new Float32Array(),
  };
}

/** Maximum size of a checkpoint's pickle, which holds names and places, not numbers. */
const pickleBytes = 16 * 1024 ** 2;

/** Reads a file's bytes from one place to another. @throws FormatError where it ends before */
export type ReadBytes = (start: number, end: number) => Promise<Uint8Array>;

async function openTorch(path: string): Promise<TensorFile> {
  const { size } = await stat(path);
  return torchTensors(size, (start, end) => readBytes(path, start, end));
}

/** Whether a zip archive is a torch.save checkpoint rather than an .npz. */
export function isTorch(bytes: Uint8Array): boolean {
  const tail = bytes.subarray(Math.max(0, bytes.length - zipTailBytes));
  const { start, length, count } = zipDirectory(tail, ".pt");
  return zipEntries(bytes.subarray(start, start + length), count, ".pt").some(isPickle);
}

const isPickle = ({ name }: ZipEntry) => /^[^/]+\/data\.pkl$/.test(name);

/** The tensors of a PyTorch checkpoint. @throws FormatError */
export async function torchTensors(size: number, read: ReadBytes): Promise<TensorFile> {
  const tail = await read(Math.max(0, size - zipTailBytes), size);
  if (tail.length < 4 || (size < zipTailBytes && !startsAsZip(tail))) throw oldCheckpoint();
  const directory = zipDirectory(tail, ".pt");
  const listed = await read(directory.start, directory.start + directory.length);
  const entries = zipEntries(listed, directory.count, ".pt");
  const pickle = entries.find(isPickle);
  if (pickle === undefined) throw oldCheckpoint();
  const root = pickle.name.slice(0, -"data.pkl".length);
  const bytesOf = async (entry: ZipEntry, from: number, to: number) => {
    if (entry.method !== 0)
      throw new FormatError(
        `${quoted(entry.name)} in the .pt file is compressed; only uncompressed files are supported.`,
      );
    const local = await read(entry.header, entry.header + localHeaderBytes);
    const start = zipDataStart(entry, local, ".pt");
    return read(start + from, start + to);
  };
  const order = entries.find(({ name }) => name === `${root}byteorder`);
  if (
    order !== undefined &&
    Buffer.from(await bytesOf(order, 0, Math.min(16, order.size))).toString() !== "little"
  ) {
    throw new FormatError("The .pt file has big-endian numbers; only little-endian is supported.");
  }
  if (pickle.size > pickleBytes)
    throw new FormatError(`The .pt file's pickle has ${pickle.size} bytes; the limit is ${pickleBytes}.`);
  const { tensors, numbers, texts } = readTorchPickle(await bytesOf(pickle, 0, pickle.size));
  return {
    metadata: Object.fromEntries(texts),
    shapes: new Map([
      ...[...numbers.keys()].map((name) => [name, []] as const),
      ...[...tensors].map(([name, { shape }]) => [name, shape] as const),
    ]),
    read: async (name) => {
      const tensor = tensors.get(name);
      if (tensor === undefined) return Float32Array.of(numbers.get(name) ?? Number.NaN);
      const entry = entries.find((one) => one.name === root + tensor.file);
      const width = torchWidths[tensor.dtype];
      if (entry === undefined || entry.size < tensor.storage * width) throw damaged(name, ".pt");
      const reach = tensor.shape.reduce(
        (sum, length, i) => sum + (length - 1) * (tensor.stride[i] as number),
        1,
      );
      if (tensor.shape.includes(0)) return new Float32Array();
      const bytes = await bytesOf(entry, tensor.offset * width, (tensor.offset + reach) * width);
      return gather(floatsOf(tensor.dtype, bytes) as Float32Array, tensor);
    },
  };
}

function startsAsZip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x50 && bytes[1] === 0x4b;
}

function oldCheckpoint(): FormatError {
  return new FormatError("The file is not a checkpoint of torch.save from PyTorch 1.6 or later.");
}
