import ndarray, { type NdArray } from "ndarray";
import type { ExcludedRows } from "../binding.js";
import { checkLayers, tokenIds } from "../check.js";
import { checkPoint, type Point } from "../points.js";
import type { Passes } from "./experiment.js";

export interface FeatureRequest {
  /** Token ids of each sequence, 1 to `context.nBatch` each. */
  sequences: readonly Int32Array[];
  layers: readonly number[];
  /** In each block. Default: the block output. */
  point?: Point;
  /** A second point of the same blocks, read in the same passes. */
  target?: Point;
  /** Per sequence, the row of the last token (default), all rows, or their mean without excluded ones. */
  rows?: "last" | "all" | "mean";
  /** By sequence: the first token for `mean` and `all`. Default: 0. */
  starts?: Int32Array;
  signal?: AbortSignal;
  onProgress?: (done: number, total: number) => void;
}

/** Rows, those of the target, and the number of rows that the means of all sequences exclude. */
export type FeatureRows = NdArray<Float32Array> & { target?: NdArray<Float32Array>; excluded: ExcludedRows };

interface LayerRows {
  layer: number;
  states: Float32Array;
  target?: Float32Array;
  excluded: ExcludedRows;
}

/**
 * Rows of many sequences, computed in packed batches that stop after the deepest layer. Clears the context's sequence.
 * @returns float32 [rows, hidden] by layer: one row per sequence, or with `rows: "all"` one per token, sequence by sequence
 */
export async function features(passes: Passes, request: FeatureRequest): Promise<Map<number, FeatureRows>> {
  const { signal, ...rest } = request;
  checkLayers(request.layers);
  if (request.point !== undefined) checkPoint(request.point);
  if (request.target !== undefined) checkPoint(request.target);
  if (request.starts !== undefined) tokenIds(request.starts);
  const sequences = request.sequences.map(tokenIds);
  const layers = await passes.run<LayerRows[]>("features", { ...rest, sequences }, signal);
  const rowsOf = (states: Float32Array) => ndarray(states, [states.length / passes.hidden, passes.hidden]);
  return new Map(
    layers.map(({ layer, states, target, excluded }) => [
      layer,
      Object.assign(rowsOf(states), { ...(target && { target: rowsOf(target) }), excluded }),
    ]),
  );
}
