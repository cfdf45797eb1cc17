import { checkInteger, checkLayers, invalid, tokenIds } from "../check.js";
import { checkPoints, type Point } from "../points.js";
import { checkIndices, type Passes } from "./experiment.js";

export interface PatchSweepRequest {
  /** Token ids of two prompts; as many in both, unless `corruptedPositions` says what belongs together. */
  clean: Int32Array;
  corrupted: Int32Array;
  /** Clean states go into the corrupted run (default), or corrupted ones into the clean run. */
  denoise?: boolean;
  /** Distinct block indices, points of each (default: the block output) and token indices. */
  layers: readonly number[];
  points?: readonly Point[];
  /** Of `head_out`, the heads, each patched by itself. Required there. */
  heads?: readonly number[];
  positions: readonly number[];
  /** Of the corrupted prompt, one for each of `positions`. Default: the same. */
  corruptedPositions?: readonly number[];
  /** Default: the clean run's most probable token, and the corrupted run's. */
  target?: number;
  foil?: number;
  /** float32 [layers, points, hidden], of each head its size: the direction of each place's random change, which is as long as the patch's. */
  controls?: Float32Array;
  signal?: AbortSignal;
  /** Counts the sites that are computed, and hears what is known of them. */
  onProgress?: (done: number, total: number, growth: PatchGrowth) => void;
}

/** What a patch sweep has found out so far; as in its result, NaN where it is still to be computed. */
export type PatchGrowth = Pick<PatchSweep, "clean" | "corrupted" | "patched">;

/**
 * Logit differences, target less foil, after the prompt: of both prompts by themselves, of the run with a row of its own
 * put back, and [layers, points, positions] of every site (of `head_out` [heads, positions] in its point's place), with the L2 length of the row and of its change, NaN where nothing
 * reads the row. `computedSites` took `computedTokens`; the other sites change nothing, by construction.
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
}

/**
 * Puts single rows of one prompt's blocks, or single heads' parts of them, into another prompt's run, a site at a time. A site at token p has
 * the run's K/V before p and computes the tokens from p on; many sites share a batch. The context needs
 * {@link patchCells} tokens, batches of at least the prompt's, and two sequences; more of each lets more sites share a
 * batch. Forgets the context's sequence.
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
      `The clean prompt has ${clean.length} tokens and the corrupted one ${corrupted.length}; positions need as many in both.`,
    );
  }
  const places = patchPlaces({ layers, points, heads });
  const both = { cleanPositions: positions, corruptedPositions: corruptedPositions ?? positions };
  return passes.run("patchSweep", { ...rest, places, ...both }, signal);
}

/** What a patch sweep puts in: each point of each layer, of `head_out` each head. */
export interface PatchPlace {
  layer: number;
  point: Point;
  head?: number;
}

/** Layer by layer, point by point and head by head, in the order asked for. @throws NativeError INVALID_ARGUMENT */
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

/** The tokens that a patch sweep holds: the prompt, and a batch of sites. */
export function patchCells(promptTokens: number, batchTokens: number): number {
  return promptTokens + Math.max(promptTokens, batchTokens);
}
