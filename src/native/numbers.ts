import { binding } from "./load.js";

/**
 * 1 for each activation of a text that figures include, otherwise 0: not the first `bos`, and none whose norm exceeds ten
 * times the median of the others. Means in the addon use the same rule.
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
 * Rounds finite float32 to 16-bit numbers, to nearest, ties to even.
 * @throws NativeError COMPUTE for the first value beyond the type's range
 */
export function narrow(values: Float32Array, type: NarrowType): Promise<Uint16Array> {
  return binding().narrow({ values, type });
}
