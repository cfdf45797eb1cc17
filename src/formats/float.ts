/** Numbers of 16 bits as numbers of 32: what files hold beside float32. */
export function floatsOf(dtype: string, bytes: Uint8Array): Float32Array | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const read = (size: number, at: (offset: number) => number) =>
    Float32Array.from({ length: bytes.byteLength / size }, (_, index) => at(index * size));
  switch (dtype) {
    case "F32":
      return read(4, (offset) => view.getFloat32(offset, true));
    case "F64":
      return read(8, (offset) => view.getFloat64(offset, true));
    case "F16":
      return read(2, (offset) => half(view.getUint16(offset, true)));
    case "BF16":
      return read(2, (offset) => brain(view.getUint16(offset, true)));
    default:
      return null;
  }
}

/** IEEE 754 binary16. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const scratch = new DataView(new ArrayBuffer(4));

/** The upper half of a float32. */
function brain(bits: number): number {
  scratch.setUint32(0, bits << 16);
  return scratch.getFloat32(0);
}
