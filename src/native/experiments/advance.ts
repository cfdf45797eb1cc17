import ndarray, { type NdArray } from "ndarray";
import { checkInteger, checkLayers, tokenIds } from "../check.js";
import { type Edit, type EditEffect, nativeEdits } from "../edit.js";
import { checkPoints, type Point } from "../points.js";
import {
  checkIndices,
  type LensReading,
  type Passes,
  type TopTokens,
  type TranslatorPlaces,
} from "./experiment.js";

/** Rows of one point of one block. */
export interface LayerCapture {
  layer: number;
  point: Point;
  /** float32 [rows, hidden], for `head_out` [rows, heads * head size]; one row per token, or only that of the last token. */
  states?: NdArray<Float32Array>;
  /** L2 norm of each row. */
  norms: Float32Array;
  /** Logit lens of each row; only if requested and supported, and if the point is in the residual stream. */
  lens?: LensReading;
  /** The same through the layer's translator, of its block output. */
  translated?: LensReading;
}

/** Attention weights of some layers, after the softmax. */
export interface AttentionRequest {
  layers: readonly number[];
  /** In each of these layers. Default: all. */
  heads?: readonly number[];
  /** Also compares the weights times the values with the heads' outputs, on the host. */
  prove?: boolean;
}

export interface LayerAttention {
  layer: number;
  heads: Int32Array;
  /** float32 [heads, tokens, tokens]: one row per token, over all tokens. */
  weights: NdArray<Float32Array>;
  /** With `prove`: relative L2 distance of the two. */
  apart: number;
}

/** The experts that a layer's router chose for each token, best first, and the weights of their outputs. */
export interface LayerRouting {
  layer: number;
  /** Experts to choose from. */
  experts: number;
  /** int32 [tokens, experts of a token]. */
  chosen: NdArray<Int32Array>;
  /** float32 of the same shape, as in the graph. */
  weights: NdArray<Float32Array>;
}

export interface AdvanceRequest {
  /** 1 to `context.nBatch` token ids. */
  tokens: Int32Array;
  /** Distinct block indices to capture; may be empty. */
  layers: readonly number[];
  /** Distinct points in each of these blocks. Default: the block output. */
  points?: readonly Point[];
  /** Capture the rows of all tokens (default) or only of the last. */
  rows?: "all" | "last";
  /** Return the states (default), or only norms and lens. */
  keepStates?: boolean;
  /** Top k of the logit lens for each captured row. */
  lensTopK?: number;
  /** A token whose rank in the lens is returned for each captured row. */
  lensTarget?: number;
  /** Or the rank of the predicted next token, for the last row; needs `nextTopK`. */
  lensAnswer?: boolean;
  /** More readings of the captured rows, all places together; needs `lensTopK`. */
  lensExtras?: {
    translators?: readonly ({ layer: number } & TranslatorPlaces)[];
    /** Entropies, and divergences from the last block's output. */
    measures?: boolean;
  };
  /** Layers whose block outputs are measured and not returned: all norms, the lens from a token on. */
  measure?: {
    /** Distinct. */
    layers: readonly number[];
    /** The first token of the pass that the lens reads. Default: 0. */
    lensFrom?: number;
    /** Top k of the logit lens. Default: none. */
    lensTopK?: number;
  };
  /** Top k for the token after the last one. */
  nextTopK?: number;
  /** For a text in one pass, from its beginning, in a context with `keepAttention`. */
  attention?: AttentionRequest;
  /** Distinct layers whose router is read, for every token. */
  routing?: readonly number[];
  /** Return the logits after the last token, float32 [vocabulary]. */
  logits?: boolean;
  /**
   * For each token, the token whose log-probability after it is returned; -1: none. Not together with `nextTopK` or
   * `logits`.
   */
  scored?: Int32Array;
  /** Stop after the deepest captured block; the sequence cannot be continued deeper then. */
  earlyExit?: boolean;
  /**
   * Changes applied after capture, in order; their layers and points must be captured. For their positions, the tokens so
   * far, including these, are the prompt.
   */
  edits?: readonly Edit[];
  signal?: AbortSignal;
}

export interface AdvanceResult {
  /** Layer by layer, then point by point, in the order of the request. */
  layers: LayerCapture[];
  /** In the order of `measure.layers`; absent without. `lens` has the rows from `lensFrom` on. */
  measured?: Omit<LayerCapture, "states">[];
  attention?: LayerAttention[];
  routing?: LayerRouting[];
  next?: TopTokens;
  logits?: Float32Array;
  /** Natural logarithms for the `scored` tokens, [tokens]; 0 for none. */
  logProbabilities?: Float64Array;
  /** The effect of each edit; absent without edits. */
  effects?: EditEffect[];
}

/** The addon's result: contiguous rows without shapes. */
interface NativePass extends Omit<AdvanceResult, "layers" | "attention" | "routing"> {
  layers: Array<Omit<LayerCapture, "states"> & { rows: number; width: number; states?: Float32Array }>;
  attention?: Array<Omit<LayerAttention, "weights"> & { weights: Float32Array }>;
  routing?: Array<
    Omit<LayerRouting, "chosen" | "weights"> & { used: number; chosen: Int32Array; weights: Float32Array }
  >;
}

/**
 * Continues the context's sequence, keeping its K/V cache, with up to `nBatch` tokens. Cancellation or an error clears the
 * whole sequence.
 * @throws NativeError LAYER_OUT_OF_RANGE, TOKEN_LIMIT, UNSUPPORTED_ARCHITECTURE, CANCELLED, …
 */
export async function advance(passes: Passes, request: AdvanceRequest): Promise<AdvanceResult> {
  const { signal, rows, ...rest } = request;
  checkLayers(request.layers);
  if (request.points !== undefined) checkPoints(request.points);
  for (const name of ["lensTopK", "lensTarget", "nextTopK"] as const) checkInteger(name, request[name], 0);
  if (request.lensExtras?.translators !== undefined) {
    checkLayers(request.lensExtras.translators.map(({ layer }) => layer));
  }
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
