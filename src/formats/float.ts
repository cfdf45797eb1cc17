import { endianness } from "node:os";

const swapped = endianness() === "BE";

const readers: Readonly<Record<string, (bytes: Uint8Array) => Float32Array>> = {
  F32: (bytes) => new Float32Array(aligned(bytes, 4)),
  F64: (bytes) => new Float32Array(new Float64Array(aligned(bytes, 8))),
  F16: (bytes) => bitsOf(bytes, halfBits()),
  BF16: (bytes) => bitsOf(bytes, undefined),
  I64: (bytes) => Float32Array.from(new BigInt64Array(aligned(bytes, 8)), Number),
  I32: (bytes) => new Float32Array(new Int32Array(aligned(bytes, 4))),
  I16: (bytes) => new Float32Array(new Int16Array(aligned(bytes, 2))),
  I8: (bytes) => new Float32Array(new Int8Array(bytes)),
  U8: (bytes) => new Float32Array(bytes),
};

/** Little-endian numbers from a file as float32, integers rounded to it; null for an unknown type. */
export function floatsOf(dtype: string, bytes: Uint8Array): Float32Array | null {
  return readers[dtype]?.(bytes) ?? null;
}

/** Copies numbers with the given strides into `out`, in C order. @returns `out` */
export function strided<T extends Float32Array | Float64Array | Int32Array>(
  data: T,
  out: T,
  shape: readonly number[],
  strides: readonly number[],
): T {
  const index = shape.map(() => 0);
  let from = 0;
  for (let to = 0; to < out.length; to++) {
    out[to] = data[from] as number;
    // The next position in C order: the last index is fastest.
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const stride = strides[axis] as number;
      index[axis] = (index[axis] as number) + 1;
      from += stride;
      if ((index[axis] as number) < (shape[axis] as number)) break;
      from -= stride * (shape[axis] as number);
      index[axis] = 0;
    }
  }
  return out;
}

/** Numbers as the bytes in memory, without a copy. */
export function bytesOf({ buffer, byteOffset, byteLength }: NodeJS.TypedArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** A separate copy in this machine's byte order. */
function aligned(bytes: Uint8Array, width: 2 | 4 | 8): ArrayBuffer {
  const copy = Buffer.from(new ArrayBuffer(bytes.byteLength));
  copy.set(bytes);
  if (swapped) copy[`swap${(width * 8) as 16 | 32 | 64}`]();
  return copy.buffer as ArrayBuffer;
}

/** 16-bit numbers: the upper half of a float32, or looked up in a table of all values. */
function bitsOf(bytes: Uint8Array, table: Uint32Array | undefined): Float32Array {
  const half = new Uint16Array(aligned(bytes, 2));
  const bits = new Uint32Array(half.length);
  for (let i = 0; i < half.length; i++) {
    const value = half[i] as number;
    bits[i] = table === undefined ? value << 16 : (table[value] as number);
  }
  return new Float32Array(bits.buffer);
}

let halves: Uint32Array | undefined;

/** The float32 bits of every IEEE 754 binary16 number. */
function halfBits(): Uint32Array {
  if (halves === undefined) {
    const values = Float32Array.from({ length: 2 ** 16 }, (_, bits) => half(bits));
    halves = new Uint32Array(values.buffer);
  }
  return halves;
}

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The numbers as F16 or BF16 if either represents all of them exactly, else null. */
export function narrowExactly(values: Float32Array): { dtype: "F16" | "BF16"; data: Uint16Array } | null {
  for (const dtype of narrowTypes) {
    const data = narrowAs(values, dtype);
    if (data !== null) return { dtype, data };
  }
  return null;
}

/** 16-bit types, the preferred one first. */
export const narrowTypes = ["F16", "BF16"] as const;

/** The numbers in a 16-bit type that represents all of them exactly, else null. */
export function narrowAs(values: Float32Array, dtype: "F16" | "BF16"): Uint16Array | null {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return allAs(bits, dtype === "F16" ? halfOf : (one) => ((one & 0xffff) === 0 ? one >>> 16 : -1));
}

function allAs(bits: Uint32Array, narrow: (bits: number) => number): Uint16Array | null {
  const out = new Uint16Array(bits.length);
  for (let i = 0; i < bits.length; i++) {
    const one = narrow(bits[i] as number);
    if (one < 0) return null;
    out[i] = one;
  }
  return out;
}

/** The binary16 bits of a float32, given by its bits; -1 if it has no exact equivalent. */
function halfOf(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const exponent = (bits >>> 23) & 0xff;
  const fraction = bits & 0x7fffff;
  if (exponent === 0 && fraction === 0) return sign;
  if (exponent >= 113 && exponent <= 142) {
    return (fraction & 0x1fff) === 0 ? sign | ((exponent - 112) << 10) | (fraction >>> 13) : -1;
  }
  // Below 2^-14, binary16 numbers are multiples of 2^-24.
  if (exponent < 103 || exponent > 112) return -1;
  const whole = 0x800000 | fraction;
  const shift = 126 - exponent;
  return (whole & ((1 << shift) - 1)) === 0 ? sign | (whole >>> shift) : -1;
}

/** The nearest binary16 numbers, ties to even; too large ones become infinite. */
export function toHalf(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const out = new Uint16Array(bits.length);
  for (let i = 0; i < bits.length; i++) out[i] = nearestHalf(bits[i] as number);
  return out;
}

/** The nearest bfloat16 numbers, ties to even. */
export function toBf16(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(bits, (one) => {
    const undefinedNumber = (one & 0x7fffffff) > 0x7f800000;
    return undefinedNumber ? (one >>> 16) | 0x40 : shiftedToEven(one, 16);
  });
}

function nearestHalf(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const size = bits & 0x7fffffff;
  if (size > 0x7f800000) return sign | 0x7e00;
  // 65520 is the tie between the largest number and infinity.
  if (size >= 0x477ff000) return sign | 0x7c00;
  const exponent = size >>> 23;
  // Below 2^-14, binary16 numbers are multiples of 2^-24; below 2^-25, the nearest is 0.
  if (exponent < 102) return sign;
  if (exponent < 113) return sign | shiftedToEven((size & 0x7fffff) | 0x800000, 126 - exponent);
  return sign | shiftedToEven(size - (112 << 23), 13);
}

/** Divides by a power of two and rounds, ties to even. */
function shiftedToEven(bits: number, shift: number): number {
  const whole = bits >>> shift;
  const rest = bits - whole * 2 ** shift;
  const half = 2 ** (shift - 1);
  return rest > half || (rest === half && whole % 2 === 1) ? whole + 1 : whole;
}
