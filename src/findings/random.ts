/** Seeded numbers strictly between 0 and 1, from the generator mulberry32 for reproducibility. */
export function uniformNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
}

/** Shuffles values uniformly (Fisher and Yates). @returns the same array */
export function shuffle<A extends unknown[] | Float32Array>(values: A, random: () => number): A {
  for (let i = values.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [values[i], values[j]] = [values[j] as A[number], values[i] as A[number]];
  }
  return values;
}

/** Seeded normal values from the Box-Muller transform of mulberry32, for reproducibility. */
export function normalNumbers(seed: number): () => number {
  const uniform = uniformNumbers(seed);
  return () => {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    return radius * Math.cos(2 * Math.PI * uniform());
  };
}

/** A vector of given length in a uniformly random direction: {@link normalNumbers}. */
export function randomVector(hidden: number, length: number, seed: number): Float32Array {
  const values = Float64Array.from({ length: hidden }, normalNumbers(seed));
  const scale = length / Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  return Float32Array.from(values, (value) => scale * value);
}
