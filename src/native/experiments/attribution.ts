import { checkInteger, invalid, tokenIds } from "../check.js";
import { checkPoint, type Point, streamPoints } from "../points.js";
import type { Passes } from "./experiment.js";

/** A linear function of the residual stream at one token: direction . row + constant. */
export interface StreamTarget {
  position: number;
  layer: number;
  /** `block_in`, `mid` or `block_out`. */
  point: Point;
  /** float32 [hidden]. */
  direction: Float32Array;
  constant?: number;
}

/**
 * A token's logit at a position, before a soft cap, with the final norm's scale fixed, minus another token's, or by default
 * minus the mean of all logits.
 */
export interface LogitTarget {
  position: number;
  token: number;
  minus?: number;
}

export interface AttributionRequest {
  tokens: Int32Array;
  /** Another text with as many tokens, for `gains`. */
  other?: Int32Array;
  targets: ReadonlyArray<StreamTarget | LogitTarget>;
  /**
   * Continues through MLPs, with half of a gated neuron's part going to its gate and half to the other branch, and
   * returns this number of the strongest neurons of each target. Default 0: neither, so that MLPs are parts.
   */
  neurons?: number;
  /** Compute in double precision. */
  precise?: boolean;
  /** Called with the number of finished blocks. */
  onProgress?: (done: number, total: number) => void;
  signal?: AbortSignal;
}

/**
 * The parts of one target's value: value = the sum of embeddings, ffn, rounding and constant. With neurons, MLPs are
 * passed, and the sum has `ffnRounding` instead of `ffn`. Heads, neurons and streams divide the value in other ways: what
 * comes through them.
 */
export interface TargetParts {
  value: number;
  /** Biases, and the target's own constant. */
  constant: number;
  /** [tokens]. */
  embeddings: Float64Array;
  /** [layers, tokens]: of each block's `ffn_out`. */
  ffn: Float64Array;
  /** [layers, tokens]: the part of attention that the linear path lacks, from the rounding of the pass's products. */
  rounding: Float64Array;
  /** [layers, tokens]: the same of MLPs; empty without neurons. */
  ffnRounding: Float64Array;
  /** [layers, tokens]: of each block's input. */
  streams: Float64Array;
  /** By layer, [heads, tokens]: of a head's output at the token that reads. */
  heads: Float64Array[];
  /** The strongest first. */
  neurons: {
    layers: Int32Array;
    tokens: Int32Array;
    neurons: Int32Array;
    values: Float64Array;
    /** Of the neurons, after the gate. */
    activations: Float64Array;
  };
  /**
   * With another text: what the value gains in the linear model if one place has the other text's output instead
   * (attribution patching).
   */
  gains?: {
    /** [layers, tokens]. */ ffn: Float64Array /** By layer, [heads, tokens]. */;
    heads: Float64Array[];
  };
  /** The sum's distance from the value, over the L2 norm of the parts and the value. */
  residual: number;
}

export interface Attribution {
  targets: TargetParts[];
  /** By layer, how far the pass's attention is from its linear path, relative L2. */
  apart: Float64Array;
  /** The same of MLPs; empty without neurons. */
  ffnApart: Float64Array;
  /** The largest `apart` and `residual` at which this model's result is not refused. */
  apartBound: number;
  residualBound: number;
}

/**
 * Divides values that are read from the residual stream among the places that wrote them, with attention weights and the
 * scales of norms fixed as they were in one pass over the text. Needs a context that keeps attention.
 * @throws NativeError UNSUPPORTED_ARCHITECTURE if the path through a block's attention is unknown, COMPUTE if a sum does
 * not equal its value
 */
export async function attribution(passes: Passes, request: AttributionRequest): Promise<Attribution> {
  const { tokens, signal, targets, ...rest } = request;
  checkInteger("neurons", rest.neurons, 0);
  if (!Array.isArray(targets)) throw invalid("Targets must be an array.");
  for (const target of targets as Array<Partial<StreamTarget & LogitTarget>>) {
    checkInteger("position", target.position ?? null, 0);
    if (target.direction === undefined) {
      checkInteger("token", target.token ?? null, 0);
      if (target.minus !== undefined) checkInteger("minus", target.minus, 0);
      continue;
    }
    checkInteger("layer", target.layer ?? null, 0);
    checkPoint(target.point);
    if (!streamPoints.has(target.point as Point))
      throw invalid(`A target reads block_in, mid or block_out, got ${target.point}.`);
  }
  if (rest.other !== undefined) tokenIds(rest.other);
  return passes.run("attribution", { ...rest, targets, tokens: tokenIds(tokens) }, signal);
}
