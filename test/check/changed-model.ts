import { readFileSync, writeFileSync } from "node:fs";
import { GgufHeaderReader, type GgufTensor, sourceOf } from "../../src/formats/gguf.js";
import { demo } from "../native/demo-model.js";

const alignment = 32;
const [f32, f16] = [0, 1];

/** Planted in a copy of the demo model. */
export interface Changes {
  /** Weights by tensor, changed in place. */
  weights?: Record<string, (values: Float32Array, shape: readonly number[]) => void>;
  /** Texts of the header, each replaced everywhere by one of the same length. */
  texts?: Record<string, string>;
  /** The bytes of a value by its key. */
  values?: Record<string, Buffer>;
}

/** Writes a copy of the demo model with changes. @returns its path */
export async function changedModel(
  path: string,
  { weights = {}, texts = {}, values = {} }: Changes,
): Promise<string> {
  const bytes = readFileSync(demo);
  const header = await GgufHeaderReader.open(sourceOf(bytes));
  for await (const _ of header.pairs());
  const tensors = new Map<string, GgufTensor>();
  for await (const tensor of header.tensors()) tensors.set(tensor.name, tensor);
  const data = Math.ceil(header.position / alignment) * alignment;
  for (const [from, to] of Object.entries(texts)) {
    if (Buffer.byteLength(from) !== Buffer.byteLength(to)) throw new Error(`${to} has another length.`);
    let at = bytes.indexOf(from);
    if (at < 0 || at > data) throw new Error(`The header has no ${from}.`);
    for (; at >= 0 && at < data; at = bytes.indexOf(from, at + 1)) bytes.write(to, at);
  }
  for (const [key, value] of Object.entries(values)) {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(Buffer.byteLength(key)));
    const at = bytes.indexOf(Buffer.concat([length, Buffer.from(key)]));
    if (at < 0) throw new Error(`The header has no ${key}.`);
    // After the key and the number of its type.
    value.copy(bytes, at + 8 + Buffer.byteLength(key) + 4);
  }
  for (const [name, change] of Object.entries(weights)) {
    const { length, offset, type, shape } = tensors.get(name) as GgufTensor;
    const place = (index: number) => data + offset + index * (type === f16 ? 2 : 4);
    if (type !== f16 && type !== f32) throw new Error(`${name} has the type ${type}.`);
    const numbers = Float32Array.from({ length }, (_, index) =>
      type === f16 ? fromHalf(bytes.readUInt16LE(place(index))) : bytes.readFloatLE(place(index)),
    );
    change(numbers, shape);
    for (const [index, value] of numbers.entries()) {
      if (type === f16) bytes.writeUInt16LE(toHalf(value), place(index));
      else bytes.writeFloatLE(value, place(index));
    }
  }
  writeFileSync(path, bytes);
  return path;
}

function fromHalf(bits: number): number {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The nearest number of 16 bits, of numbers below 65504. */
function toHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size < 2 ** -14) return sign + Math.round(size * 2 ** 24);
  const exponent = Math.floor(Math.log2(size));
  // A fraction that rounds up to 1024 carries into the exponent.
  return sign + ((exponent + 15) << 10) + Math.round((size / 2 ** exponent - 1) * 1024);
}
