import { checkInteger, checkLayers, invalid, tokenIds } from "../check.js";
import { checkPoints, type Point } from "../points.js";
import { checkIndices, type Passes } from "./experiment.js";

export interface PatchSweepRequest {
  /** Token ids of two prompts of equal length, unless `corruptedPositions` aligns them. */
  clean: Int32Array;
  corrupted: Int32Array;
  /** Clean states go into the corrupted run (default), or corrupted ones into the clean run. */
  denoise?: boolean;
  /** Distinct block indices, points of each (default: the block output) and token indices. */
  layers: readonly number[];
  points?: readonly Point[];
  /** For `head_out`, the heads, which are patched separately. Required there. */
  heads?: readonly number[];
  positions: readonly number[];
  /** In the corrupted prompt, one for each of `positions`. Default: the same. */
  corruptedPositions?: readonly number[];
  /** Default: the clean run's most probable token, and the corrupted run's. */
  target?: number;
  foil?: number;
  /** float32 [layers, points, hidden], for a head its size: the direction of each place's norm-matched random change. */
  controls?: Float32Array;
  signal?: AbortSignal;
  /** Counts computed sites, with intermediate results. */
  onProgress?: (done: number, total: number, growth: PatchGrowth) => void;
}

/** Intermediate results of a patch sweep; NaN for sites that are not computed yet. */
export type PatchGrowth = Pick<PatchSweep, "clean" | "corrupted" | "patched">;

/**
 * Logit differences, target minus foil, after the prompt: of both unpatched prompts, of the run patched with its own row
 * (`restored`), and [layers, points, positions] of every site (for `head_out` [heads, positions] instead of the point), with
 * the L2 length of the row and of its change, NaN if nothing reads the row. `computedSites` took `computedTokens`,
 * of which the site of `restored` took `restoredTokens` (0 if there was none); the other sites change nothing, by construction.
 */
export interface PatchSweep {
  target: number;
  foil: number;
  clean: number;
  corrupted: number;
  restored: number;
  patched: Float64Array;
  control?: Float64Array;
  changeLength: Float64Array;
  rowLength: Float64Array;
  computedSites: number;
  computedTokens: number;
  restoredTokens: number;
}

/**
 * Activation patching: copies single rows, or heads' parts of them, from one prompt into the run of another, one site at a
 * time. A site at token p has the run's K/V before p and computes the tokens from p on; many sites share a batch. The
 * context needs {@link patchCells} tokens, batches of at least the prompt's, and two sequences; more of each lets more
 * sites share a batch. Clears the context's sequence.
 */
export async function patchSweep(passes: Passes, request: PatchSweepRequest): Promise<PatchSweep> {
  const { signal, layers, points, heads, positions, corruptedPositions, ...rest } = request;
  checkLayers(layers);
  if (points !== undefined) checkPoints(points);
  checkIndices("Positions", positions);
  checkIndices("Heads", heads ?? []);
  checkIndices("Positions", corruptedPositions ?? []);
  checkInteger("target", request.target, 0);
  checkInteger("foil", request.foil, 0);
  const [clean, corrupted] = [tokenIds(request.clean), tokenIds(request.corrupted)];
  if (corruptedPositions === undefined && clean.length !== corrupted.length) {
    throw invalid(
      `The clean prompt has ${clean.length} tokens and the corrupted one ${corrupted.length}; positions need prompts of equal length.`,
    );
  }
  const places = patchPlaces({ layers, points, heads });
  const both = { cleanPositions: positions, corruptedPositions: corruptedPositions ?? positions };
  return passes.run("patchSweep", { ...rest, places, ...both }, signal);
}

/** A patched place: a point of a layer, or a head of `head_out`. */
export interface PatchPlace {
  layer: number;
  point: Point;
  head?: number;
}

/** Layer by layer, point by point and head by head. @throws NativeError INVALID_ARGUMENT */
export function patchPlaces({
  layers,
  points = ["block_out"],
  heads,
}: {
  layers: readonly number[];
  points?: readonly Point[] | undefined;
  heads?: readonly number[] | undefined;
}): PatchPlace[] {
  if (points.includes("head_out") && (heads === undefined || heads.length === 0)) {
    throw invalid("Patching head_out needs heads.");
  }
  return layers.flatMap((layer) =>
    points.flatMap((point): PatchPlace[] =>
      point === "head_out"
        ? (heads as readonly number[]).map((head) => ({ layer, point, head }))
        : [{ layer, point }],
    ),
  );
}

/** The tokens of a patch sweep: the prompt, and a batch of sites. */
export function patchCells(promptTokens: number, batchTokens: number): number {
  return promptTokens + Math.max(promptTokens, batchTokens);
}
