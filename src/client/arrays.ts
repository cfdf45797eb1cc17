import ndarray, { type NdArray } from "ndarray";
import { parse } from "npyjs";
import { FormatError } from "../formats/format-error.js";
import { inCOrder, npzFiles } from "../formats/npz.js";
import { TaplineError } from "./errors.js";

/** An array in the Lab's artifacts. */
export type ArtifactArray = NdArray<Float32Array | Float64Array | Int32Array>;

/** The largest Buffer. */
const mostBytes = 2 ** 32;

/**
 * The arrays of an .npz file by name.
 * @throws TaplineError if the file is invalid
 */
export function readArrays(file: Uint8Array): Map<string, ArtifactArray> {
  try {
    return new Map([...npzFiles(file, mostBytes)].map(([name, bytes]) => [name, readArray(name, bytes)]));
  } catch (error) {
    throw error instanceof FormatError ? new TaplineError(error.message) : error;
  }
}

function readArray(name: string, bytes: Buffer): ArtifactArray {
  // A copy, because typed arrays must be aligned.
  const { data, shape, fortranOrder } = parse(new Uint8Array(bytes).buffer);
  const known = data instanceof Float32Array || data instanceof Float64Array || data instanceof Int32Array;
  if (!known)
    throw new TaplineError(`${name} has an unsupported type: only float32, float64 and int32 are supported.`);
  return ndarray(fortranOrder ? inCOrder(data, shape) : data, shape);
}
