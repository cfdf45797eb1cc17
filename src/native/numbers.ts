import { binding } from "./load.js";

export type NarrowType = "f16" | "bf16";

/**
 * Finite float32 as numbers of 16 bits, rounded to nearest, ties to even.
 * @throws NativeError COMPUTE with the first value that is beyond the type's range
 */
export function narrow(values: Float32Array, type: NarrowType): Promise<Uint16Array> {
  return binding().narrow({ values, type });
}
