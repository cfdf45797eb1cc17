import ndarray, { type NdArray } from "ndarray";
import { checkInteger, checkLayers, tokenIds } from "../check.js";
import { type Edit, type EditEffect, nativeEdits } from "../edit.js";
import { checkPoints, type Point } from "../points.js";
import { checkIndices, type Passes, type TopTokens } from "./experiment.js";

/** Rows of one point of one block. */
export interface LayerCapture {
  layer: number;
  point: Point;
  /** float32 [rows, hidden], of `head_out` [rows, heads * head size]; one row a token, or the last token's only. Absent with `keepStates: false`. */
  states?: NdArray<Float32Array>;
  /** L2 norm of each row. */
  norms: Float32Array;
  /** Logit lens of each row; absent when not asked for or not supported, or where the point is no residual stream. */
  lens?: TopTokens;
}

/** Attention of some layers: how much each token of a text reads of each, after the softmax. */
export interface AttentionRequest {
  layers: readonly number[];
  /** Of each of these layers. Default: all. */
  heads?: readonly number[];
  /** Also compares the weights times the values with what the heads read, on the host. */
  prove?: boolean;
}

export interface LayerAttention {
  layer: number;
  heads: Int32Array;
  /** float32 [heads, tokens, tokens]: a row for each token, over all of them. */
  weights: NdArray<Float32Array>;
  /** With `prove`: relative L2 distance of the two. */
  apart: number;
}

/** Which experts a layer's router chose for each token, best first, and the weights that their outputs are added with. */
export interface LayerRouting {
  layer: number;
  /** Experts to choose from. */
  experts: number;
  /** int32 [tokens, experts of a token]. */
  chosen: NdArray<Int32Array>;
  /** float32, of the same shape: as the graph multiplies by them. */
  weights: NdArray<Float32Array>;
}

export interface AdvanceRequest {
  /** 1 to `context.nBatch` token ids. */
  tokens: Int32Array;
  /** Distinct block indices to capture; may be empty. */
  layers: readonly number[];
  /** Distinct points of each of these blocks. Default: the block output. */
  points?: readonly Point[];
  /** Capture every token's row (default) or only the last one's. */
  rows?: "all" | "last";
  /** Return the states (default), or only norms and lens. */
  keepStates?: boolean;
  /** Top k of the logit lens for every captured row. */
  lensTopK?: number;
  /** A token whose place in the lens is told for every captured row. */
  lensTarget?: number;
  /** Or that of the pass's own answer for the last row, where `nextTopK` gives one. */
  lensAnswer?: boolean;
  /** Layers whose block outputs are measured and not returned: all norms, the lens from a token on. */
  measure?: {
    /** Distinct. */
    layers: readonly number[];
    /** The first token of the pass that the lens reads. Default: 0. */
    lensFrom?: number;
    /** Top k of the logit lens. Default: none. */
    lensTopK?: number;
  };
  /** Top k of the token after the last one. */
  nextTopK?: number;
  /** Of a text in one pass, from its beginning, in a context with `keepAttention`. */
  attention?: AttentionRequest;
  /** Distinct layers whose router is read, of every token. */
  routing?: readonly number[];
  /** Return the logits after the last token, float32 [vocabulary]. */
  logits?: boolean;
  /**
   * A token id for each token, whose log-probability after it is wanted; -1: none. Such a pass gives no other answer:
   * neither `nextTopK` nor `logits`.
   */
  scored?: Int32Array;
  /** Compute no block behind the deepest captured one; the sequence can then not be continued deeper. */
  earlyExit?: boolean;
  /**
   * Changes applied after capture, in order; their layers and points must be among those captured. For their positions the tokens so
   * far, these included, are the prompt.
   */
  edits?: readonly Edit[];
  signal?: AbortSignal;
}

export interface AdvanceResult {
  /** Layer by layer, and point by point, in the order asked for. */
  layers: LayerCapture[];
  /** In the order of `measure.layers`; absent without. `lens` has the rows from `lensFrom` on. */
  measured?: Omit<LayerCapture, "states">[];
  /** Layer by layer, in the order asked for. */
  attention?: LayerAttention[];
  /** Layer by layer, in the order asked for. */
  routing?: LayerRouting[];
  next?: TopTokens;
  logits?: Float32Array;
  /** Of the `scored` tokens, natural logarithm, [tokens]; 0 where none was asked for. */
  logProbabilities?: Float64Array;
  /** What each edit did; absent without edits. */
  effects?: EditEffect[];
}

/** As the addon answers: rows one after the other, without their shapes. */
interface NativePass extends Omit<AdvanceResult, "layers" | "attention" | "routing"> {
  layers: Array<Omit<LayerCapture, "states"> & { rows: number; width: number; states?: Float32Array }>;
  attention?: Array<Omit<LayerAttention, "weights"> & { weights: Float32Array }>;
  routing?: Array<
    Omit<LayerRouting, "chosen" | "weights"> & { used: number; chosen: Int32Array; weights: Float32Array }
  >;
}

/**
 * Continues the context's one sequence. Call in chunks of up to `nBatch` tokens; the K/V cache is kept.
 * Cancelling or failing forgets the whole sequence.
 * @throws NativeError LAYER_OUT_OF_RANGE, TOKEN_LIMIT, UNSUPPORTED_ARCHITECTURE, CANCELLED, …
 */
export async function advance(passes: Passes, request: AdvanceRequest): Promise<AdvanceResult> {
  const { signal, rows, ...rest } = request;
  checkLayers(request.layers);
  if (request.points !== undefined) checkPoints(request.points);
  for (const name of ["lensTopK", "lensTarget", "nextTopK"] as const) checkInteger(name, request[name], 0);
  if (request.measure !== undefined) {
    checkLayers(request.measure.layers);
    checkInteger("lensFrom", request.measure.lensFrom, 0);
    checkInteger("lensTopK", request.measure.lensTopK, 0);
  }
  if (request.scored !== undefined) tokenIds(request.scored);
  if (request.attention !== undefined) {
    checkLayers(request.attention.layers);
    checkIndices("Heads", request.attention.heads ?? []);
  }
  if (request.routing !== undefined) checkLayers(request.routing);
  const { length } = tokenIds(request.tokens);
  const edits = nativeEdits(request.edits, passes.hidden);
  const found = await passes.run<NativePass>("advance", { ...rest, edits, allRows: rows !== "last" }, signal);
  const { layers, attention, routing, ...others } = found;
  return {
    ...others,
    layers: layers.map(({ rows: count, width, states, ...layer }) =>
      states === undefined ? layer : { ...layer, states: ndarray(states, [count, width]) },
    ),
    ...(attention && {
      attention: attention.map(({ weights, ...layer }) => ({
        ...layer,
        weights: ndarray(weights, [layer.heads.length, length, length]),
      })),
    }),
    ...(routing && {
      routing: routing.map(({ used, chosen, weights, ...layer }) => ({
        ...layer,
        chosen: ndarray(chosen, [length, used]),
        weights: ndarray(weights, [length, used]),
      })),
    }),
  };
}
