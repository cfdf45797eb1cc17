import ndarray, { type NdArray } from "ndarray";
import { parse } from "npyjs";
import { FormatError } from "../formats/format-error.js";
import { inCOrder, npzFiles } from "../formats/npz.js";
import { TaplineError } from "./errors.js";

/** What the Lab's artifacts hold. */
export type ArtifactArray = NdArray<Float32Array | Float64Array | Int32Array>;

/** A Buffer holds no more. */
const mostBytes = 2 ** 32;

/**
 * The arrays of an .npz file by their names, as NumPy sees them.
 * @throws TaplineError where the file is none, or damaged
 */
export function readArrays(file: Uint8Array): Map<string, ArtifactArray> {
  try {
    return new Map([...npzFiles(file, mostBytes)].map(([name, bytes]) => [name, readArray(name, bytes)]));
  } catch (error) {
    throw error instanceof FormatError ? new TaplineError(error.message) : error;
  }
}

function readArray(name: string, bytes: Buffer): ArtifactArray {
  // A copy: the numbers have to begin where their size divides.
  const { data, shape, fortranOrder } = parse(new Uint8Array(bytes).buffer);
  const known = data instanceof Float32Array || data instanceof Float64Array || data instanceof Int32Array;
  if (!known) throw new TaplineError(`${name} is not of float32, float64 or int32.`);
  return ndarray(fortranOrder ? inCOrder(data, shape) : data, shape);
}
