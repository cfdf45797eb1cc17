import { checkInteger, invalid, tokenIds } from "../check.js";
import type { DictionaryPlaces } from "../dictionary.js";
import type { Passes } from "./experiment.js";
import { checkTargets, type GraphEdges, type GraphTarget } from "./frozen-pass.js";

/** A block's transcoder, and the features that are active in a text. */
export interface GraphTranscoderUse {
  layer: number;
  /** Where it reads: the MLP's input, or the stream before the MLP's norm. */
  point: "ffn_in" | "mid" | "block_in";
  dictionary: DictionaryPlaces;
  // By active feature, ascending by token.
  tokens: Int32Array;
  features: Int32Array;
}

export interface TranscoderGraphRequest {
  tokens: Int32Array;
  targets: readonly GraphTarget[];
  /** Ascending by layer. The MLP outputs of other blocks are errors. */
  transcoders: readonly GraphTranscoderUse[];
  /** Number of first tokens at which MLP outputs are constants; no active feature may be there. Default 0. */
  zeros?: number;
  /** The most features, each at one token. */
  nodes: number;
  /** The number of these, the strongest for the first target, that are removed. Default 0. */
  tried?: number;
  /** Compute in double precision. */
  precise?: boolean;
  /** Called with the number of finished rows of the graph: targets and nodes. */
  onProgress?: (done: number, total: number) => void;
  signal?: AbortSignal;
}

/**
 * Active features of transcoders, each at one token, and what each of them, embeddings, errors and the rest add directly to
 * each other and to the targets.
 */
export interface TranscoderGraph {
  /** Approximate peak memory in addition to the model. */
  bytes: number;
  /** Upwards: by block, by token, by feature. */
  nodes: {
    layers: Int32Array;
    tokens: Int32Array;
    /** The feature in its block's dictionary. */
    indices: Int32Array;
    /** Its activation. */
    values: Float64Array;
    /** [nodes, targets]: what comes through it in the linear model. */
    relevances: Float64Array;
  };
  /**
   * The columns: embeddings by token, nodes, then by layer and token the active features that are not nodes, the errors, and
   * rounding.
   */
  edges: GraphEdges;
  /** [targets, columns without nodes]: what comes from each of them on all paths. */
  starts: Float64Array;
  /** By layer, how far the pass's attention is from its linear path, relative L2. */
  apart: Float64Array;
  /** The same of the MLP's input; 0 where it is not read. */
  ffnInApart: Float64Array;
  /** Nodes whose removal is to be measured, the strongest first. */
  tried: Int32Array;
  /** For each of these, how `ffn_out` changes at its token without the feature, [blocks that it writes into, hidden]. */
  losses: Float32Array[];
  /**
   * [tried, targets + nodes]: what each row loses without the feature, with attention weights, norms and all other MLP outputs
   * frozen, computed upwards from the change.
   */
  frozen: Float64Array;
  apartBound: number;
  residualBound: number;
}

/**
 * Finds the edges between embeddings, active features of transcoders, errors and logits, with attention weights and norms
 * fixed as they were in one pass over the text (Ameisen et al. 2025). Needs a context that keeps attention.
 * @throws NativeError UNSUPPORTED_ARCHITECTURE if the path through a block is unknown, COMPUTE if a node's edges do not add
 * up to its value, or a feature's removal in the frozen model does not equal its edges
 */
export async function transcoderGraph(
  passes: Passes,
  request: TranscoderGraphRequest,
): Promise<TranscoderGraph> {
  const { signal, ...rest } = request;
  return passes.run("transcoderGraph", nativeRequest(rest), signal);
}

/** Approximate peak memory of a graph in addition to the model, in bytes. @throws NativeError like the graph itself */
export async function transcoderGraphBytes(passes: Passes, request: TranscoderGraphRequest): Promise<number> {
  const { signal, ...rest } = request;
  const options = { ...nativeRequest(rest), estimate: true };
  return (await passes.run<TranscoderGraph>("transcoderGraph", options, signal)).bytes;
}

function nativeRequest({ tokens, ...rest }: Omit<TranscoderGraphRequest, "signal">): object {
  checkInteger("nodes", rest.nodes, 0);
  checkInteger("tried", rest.tried, 0);
  checkInteger("zeros", rest.zeros, 0);
  checkTargets(rest.targets);
  if (!Array.isArray(rest.transcoders)) throw invalid("Transcoders must be an array.");
  return { ...rest, tokens: tokenIds(tokens) };
}
