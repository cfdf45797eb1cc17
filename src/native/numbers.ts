import { binding } from "./load.js";

/**
 * Which activations of a text count in figures, 1 or 0 each: not the first `bos` ones, and none whose norm is above ten
 * times the median norm of the others. Means of the addon keep to the same.
 * @param rows of all the text's tokens at one place, [tokens, hidden]
 */
export function countedRows(rows: Float32Array, hidden: number, bos: number): Uint8Array {
  const norms = Float64Array.from({ length: rows.length / hidden }, (_, row) => {
    let sum = 0;
    for (let i = row * hidden; i < (row + 1) * hidden; i++) sum += (rows[i] as number) ** 2;
    return Math.sqrt(sum);
  });
  return binding().countedRows({ norms, bos });
}

export type NarrowType = "f16" | "bf16";

/**
 * Finite float32 as numbers of 16 bits, rounded to nearest, ties to even.
 * @throws NativeError COMPUTE with the first value that is beyond the type's range
 */
export function narrow(values: Float32Array, type: NarrowType): Promise<Uint16Array> {
  return binding().narrow({ values, type });
}
