import { checkInteger, tokenIds } from "../check.js";
import type { Passes } from "./experiment.js";
import { checkTargets, type GraphEdges, type GraphTarget } from "./frozen-pass.js";

export interface AttributionGraphRequest {
  tokens: Int32Array;
  targets: readonly GraphTarget[];
  /** The most neurons and attention heads, each at one token. */
  nodes: number;
  /** The number of these, the strongest for the first target, whose removal is to be measured. Default 0. */
  tried?: number;
  /** The first token at which there are nodes. Default 0. */
  first?: number;
  /** Compute in double precision. */
  precise?: boolean;
  /** Called with the number of finished blocks: each counts once to find nodes, to read them, and for their edges. */
  onProgress?: (done: number, total: number) => void;
  signal?: AbortSignal;
}

/**
 * Neurons and attention heads, each at one token, and what each of them, embeddings and the rest add directly to each
 * other and to the targets: through the residual stream and through heads that are not nodes.
 */
export interface AttributionGraph {
  /** Approximate peak memory in addition to the model. */
  bytes: number;
  /** Upwards: by block, heads before neurons, by token. */
  nodes: {
    /** 1 for a head, 0 for a neuron. */
    heads: Int32Array;
    layers: Int32Array;
    /** Of a head the token that reads. */
    tokens: Int32Array;
    /** In its block. */
    indices: Int32Array;
    /** A neuron's activation after the gate; a head's output in the direction in which it affects the targets. */
    values: Float64Array;
    /** What comes through it in the linear model, without signs, weighted over the targets. */
    influences: Float64Array;
    /** [nodes, targets]: the same of each target, with its sign. */
    relevances: Float64Array;
  };
  /** The columns: embeddings by token, nodes, then by layer and token the neurons that are not nodes, and the same of rounding. */
  edges: GraphEdges;
  /** By target, [tokens]: what comes from each embedding through all paths. */
  embeddings: Float64Array[];
  /** By target: what comes from the rounding of the pass's products through all paths. */
  rounding: Float64Array;
  /** By layer, how far the pass's attention is from its linear path, relative L2. */
  apart: Float64Array;
  ffnApart: Float64Array;
  /** Nodes whose removal is to be measured, the strongest first. */
  tried: Int32Array;
  /** For each of these, how `ffn_out` changes at its token without the neuron; empty for a head. */
  losses: Float32Array[];
  apartBound: number;
  residualBound: number;
}

/**
 * Finds the neurons and heads through which most of some logits comes, with attention weights, the scales of norms and gates
 * fixed as they were in one pass over the text (RelP: Jafari et al. 2025), and the edges between them. Needs a context that
 * keeps attention.
 * @throws NativeError UNSUPPORTED_ARCHITECTURE if the path through a block is unknown, COMPUTE if a node's edges do not add
 * up to its value
 */
export async function attributionGraph(
  passes: Passes,
  request: AttributionGraphRequest,
): Promise<AttributionGraph> {
  const { signal, ...rest } = request;
  return passes.run("attributionGraph", nativeRequest(rest), signal);
}

/** Approximate peak memory of a graph in addition to the model, in bytes. @throws NativeError like the graph itself */
export async function attributionGraphBytes(
  passes: Passes,
  request: AttributionGraphRequest,
): Promise<number> {
  const { signal, ...rest } = request;
  const options = { ...nativeRequest(rest), estimate: true };
  return (await passes.run<AttributionGraph>("attributionGraph", options, signal)).bytes;
}

function nativeRequest({ tokens, targets, ...rest }: Omit<AttributionGraphRequest, "signal">): object {
  checkInteger("nodes", rest.nodes, 0);
  checkInteger("tried", rest.tried, 0);
  checkInteger("first", rest.first, 0);
  checkTargets(targets);
  return { ...rest, targets, tokens: tokenIds(tokens) };
}
