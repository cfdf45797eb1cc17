/** Comparisons of float arrays. All sums run in double precision unless they say otherwise. */

/** sqrt(sum (a - b)^2) / sqrt(sum b^2) */
export function relativeDistance(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  let difference = 0;
  let size = 0;
  for (let i = 0; i < a.length; ++i) {
    difference += (a[i]! - b[i]!) ** 2;
    size += b[i]! ** 2;
  }
  if (difference === 0) return 0;
  const distance = Math.sqrt(difference / size);
  return Number.isNaN(distance) ? Number.POSITIVE_INFINITY : distance;
}

/** Whether two float32 arrays hold the same bits. NaN equals itself, 0 does not equal -0. */
export function sameBits(a: Float32Array, b: Float32Array): boolean {
  return Buffer.compare(bytes(a), bytes(b)) === 0;
}

function bytes(array: Float32Array): Buffer {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}

export function allFinite(array: ArrayLike<number>): boolean {
  return Array.prototype.every.call(array, Number.isFinite);
}

/** Element after element in float32, as llama-eval-callback adds up. */
export function floatSum(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; ++i) sum = Math.fround(sum + values[i]!);
  return sum;
}

export function absoluteSum(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; ++i) sum += Math.abs(values[i]!);
  return sum;
}

export function softmax(logits: ArrayLike<number>): Float64Array {
  const result = Float64Array.from(logits);
  const highest = result.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  let sum = 0;
  for (let i = 0; i < result.length; ++i) {
    result[i] = Math.exp(result[i]! - highest);
    sum += result[i]!;
  }
  return result.map((value) => value / sum);
}

/** Half the sum of |p - q|, for a whole distribution `p` and `q` given as token ids with probabilities. */
export function totalVariation(
  p: Float64Array,
  q: { tokenIds: Int32Array; probabilities: Float32Array },
): number {
  const full = new Float64Array(p.length);
  q.tokenIds.forEach((id, i) => {
    full[id] = q.probabilities[i]!;
  });
  return p.reduce((sum, value, id) => sum + Math.abs(value - full[id]!), 0) / 2;
}

/** Reproducible numbers in [0, 1): the same checks run every time. */
export function randomSource(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A direction of the given length, uniform on the sphere. */
export function randomVector(size: number, length: number, random: () => number): Float32Array {
  const vector = Float64Array.from({ length: size }, () => {
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    return radius * Math.cos(2 * Math.PI * random());
  });
  const norm = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return Float32Array.from(vector, (value) => (value * length) / norm);
}
