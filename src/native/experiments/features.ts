import ndarray, { type NdArray } from "ndarray";
import type { ExcludedRows } from "../binding.js";
import { checkLayers, tokenIds } from "../check.js";
import { checkPoint, type Point } from "../points.js";
import type { Passes } from "./experiment.js";

export interface FeatureRequest {
  /** Token ids of each sequence, 1 to `context.nBatch` each. */
  sequences: readonly Int32Array[];
  layers: readonly number[];
  /** Of each block. Default: the block output. */
  point?: Point;
  /** The last token's row of each sequence (default), every token's, or the mean of its rows that count. */
  rows?: "last" | "all" | "mean";
  /** Of each sequence the first token that its mean, or all its rows, take in. Default: its first. */
  starts?: Int32Array;
  signal?: AbortSignal;
  onProgress?: (done: number, total: number) => void;
}

/** Rows, and how many of all sequences' their means left out. */
export type FeatureRows = NdArray<Float32Array> & { excluded: ExcludedRows };

/**
 * Block outputs of many sequences, computed in packed batches that stop behind the deepest layer. Forgets the
 * context's sequence.
 * @returns float32 [rows, hidden] for each layer, in the order asked for: a row a sequence, or with `rows: "all"` a
 *   row a token, sequence by sequence; and what means left out
 */
export async function features(passes: Passes, request: FeatureRequest): Promise<Map<number, FeatureRows>> {
  const { signal, ...rest } = request;
  checkLayers(request.layers);
  if (request.point !== undefined) checkPoint(request.point);
  if (request.starts !== undefined) tokenIds(request.starts);
  const sequences = request.sequences.map(tokenIds);
  const layers = await passes.run<Array<{ layer: number; states: Float32Array; excluded: ExcludedRows }>>(
    "features",
    { ...rest, sequences },
    signal,
  );
  return new Map(
    layers.map(({ layer, states, excluded }) => [
      layer,
      Object.assign(ndarray(states, [states.length / passes.hidden, passes.hidden]), { excluded }),
    ]),
  );
}
