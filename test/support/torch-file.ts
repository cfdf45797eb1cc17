import { storedZip } from "./npz-bytes.js";

/** The values that a checkpoint may hold here. */
export type TorchValue =
  | { shape: number[]; data: Float32Array | Uint16Array }
  | number
  | string
  | { [key: string]: TorchValue };

/**
 * A checkpoint as torch.save lays it out, written opcode by opcode from the format's description; keys that are whole numbers
 * become integers, as those of a lens are.
 */
export function torchFile(value: { [key: string]: TorchValue }): Buffer {
  const storages: Buffer[] = [];
  const pickle = Buffer.concat([Buffer.from([0x80, 2]), written(value, storages), Buffer.from(".")]);
  return storedZip({
    "lens/data.pkl": pickle,
    "lens/byteorder": Buffer.from("little"),
    ...Object.fromEntries(storages.map((data, index) => [`lens/data/${index}`, data])),
    "lens/version": Buffer.from("3\n"),
  });
}

function written(value: TorchValue, storages: Buffer[]): Buffer {
  if (typeof value === "number") return integer(value);
  if (typeof value === "string") return text(value);
  if (isTensor(value)) return tensor(value, storages);
  const items = Object.entries(value).flatMap(([key, inner]) => [
    /^\d+$/.test(key) ? integer(Number(key)) : text(key),
    written(inner, storages),
  ]);
  return Buffer.concat([Buffer.from("}("), ...items, Buffer.from("u")]);
}

type TorchTensor = Extract<TorchValue, { data: unknown }>;

function isTensor(value: TorchValue): value is TorchTensor {
  return typeof value === "object" && ArrayBuffer.isView((value as { data?: unknown }).data);
}

function tensor({ shape, data }: TorchTensor, storages: Buffer[]): Buffer {
  const key = String(storages.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength)) - 1);
  const strides = shape.map((_, i) => shape.slice(i + 1).reduce((product, length) => product * length, 1));
  const tuple = (numbers: number[]) =>
    Buffer.concat([Buffer.from("("), ...numbers.map(integer), Buffer.from("t")]);
  return Buffer.concat([
    Buffer.from("ctorch._utils\n_rebuild_tensor_v2\n(("),
    text("storage"),
    Buffer.from(`ctorch\n${data instanceof Uint16Array ? "Half" : "Float"}Storage\n`),
    text(key),
    text("cpu"),
    integer(data.length),
    Buffer.from("tQ"),
    integer(0),
    tuple(shape),
    tuple(strides),
    Buffer.from("\x89ccollections\nOrderedDict\n)RtR", "latin1"),
  ]);
}

function text(value: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(Buffer.byteLength(value));
  return Buffer.concat([Buffer.from("X"), length, Buffer.from(value)]);
}

function integer(value: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes.write("J");
  bytes.writeInt32LE(value, 1);
  return bytes;
}
