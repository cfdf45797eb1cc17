import { readFileSync, writeFileSync } from "node:fs";

/** Bytes of the scalar types of metadata, by their number in the format (ggml's gguf.md). */
const scalarBytes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const [text, array, alignment] = [8, 9, 32];
const [f32, f16] = [0, 1];

/** Writes a GGUF file in F16 with every number of it in F32, which holds them exactly. */
export function writeInF32(from: string, to: string): void {
  const bytes = readFileSync(from);
  let at = 8;
  const whole = () => {
    at += 8;
    return Number(bytes.readBigUInt64LE(at - 8));
  };
  const number = () => {
    at += 4;
    return bytes.readUInt32LE(at - 4);
  };
  const string = () => {
    const length = whole();
    at += length;
    return bytes.toString("utf8", at - length, at);
  };
  const skip = (type: number) => {
    if (type === text) string();
    else if (type !== array) at += scalarBytes[type] as number;
    else {
      const inner = number();
      for (let left = whole(); left > 0; left--) skip(inner);
    }
  };
  const tensors = whole();
  for (let pairs = whole(); pairs > 0; pairs--) {
    const key = string();
    const type = number();
    // The file's declared type: all F32.
    if (key === "general.file_type") bytes.writeUInt32LE(0, at);
    skip(type);
  }
  const head = [bytes.subarray(0, at)];
  const described = Array.from({ length: tensors }, () => {
    const start = at;
    string();
    const shape = Array.from({ length: number() }, whole);
    const named = bytes.subarray(start, at);
    const type = number();
    if (type !== f32 && type !== f16)
      throw new Error(`${from} holds another type than F32 and F16: ${type}.`);
    return { named, type, count: shape.reduce((product, length) => product * length, 1), offset: whole() };
  });
  const data = Math.ceil(at / alignment) * alignment;
  const padded = (size: number) => Math.ceil(size / alignment) * alignment;
  const bodies: Buffer[] = [];
  let offset = 0;
  for (const { named, type, count, offset: old } of described) {
    const info = Buffer.alloc(12);
    info.writeUInt32LE(f32, 0);
    info.writeBigUInt64LE(BigInt(offset), 4);
    head.push(named, info);
    const body = Buffer.alloc(padded(4 * count));
    for (let i = 0; i < count; i++) {
      const place = data + old + i * (type === f16 ? 2 : 4);
      body.writeFloatLE(type === f16 ? half(bytes.readUInt16LE(place)) : bytes.readFloatLE(place), 4 * i);
    }
    bodies.push(body);
    offset += body.length;
  }
  const start = Buffer.concat(head);
  writeFileSync(to, Buffer.concat([start, Buffer.alloc(padded(start.length) - start.length), ...bodies]));
}

/** A number of 16 bits (IEEE 754 binary16). */
function half(bits: number): number {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
