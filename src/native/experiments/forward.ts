import ndarray, { type NdArray } from "ndarray";
import { checkInteger, invalid, tokenIds } from "../check.js";
import { type Edit, type EditEffect, nativeEdits } from "../edit.js";
import { checkPoint, type Point } from "../points.js";
import type { Passes } from "./experiment.js";

/** A text with its own edits. */
export interface ForwardSequence {
  tokens: Int32Array;
  /** In order; at any point with one vector per token, captured or not. For their positions, the text is the prompt. */
  edits?: readonly Edit[];
}

/** A text that the served model tokenizes. */
export interface TextSequence extends Pick<ForwardSequence, "edits"> {
  text: string;
}

export interface ForwardRequest {
  sequences: readonly ForwardSequence[];
  /** Distinct. All points but the router; `attention` needs a context with `keepAttention`. */
  captures?: ReadonlyArray<{ layer: number; point: Point }>;
  /** The captured tokens of each sequence; negative ones count from its end. Default: all. Attention always has all. */
  positions?: Int32Array;
  /** After which tokens logits are returned: none (default), the last of each sequence, all, or some. */
  logits?: "none" | "last" | "all" | Int32Array;
  /** Results as 16-bit floats, in Uint16Arrays. */
  half?: boolean;
  /** Of all results. Default: no limit. */
  maxBytes?: number;
}

export interface ForwardResult {
  /** In the order of the request. */
  captures: Array<{
    /** Numbers of a row; 0 for `attention`. */
    width: number;
    /** Of `attention` and `head_out`; 0 for others. */
    heads: number;
    /**
     * float32 [rows, width], sequence by sequence; for `attention` [heads, tokens, tokens] of each sequence, one after
     * another. A row that is also edited is returned with its edit.
     */
    values: Float32Array | Uint16Array;
  }>;
  /** float32 [rows, vocabulary], sequence by sequence. */
  logits?: NdArray<Float32Array | Uint16Array>;
  /** By sequence, the effect of each edit. */
  effects: EditEffect[][];
}

/** The request as the addon reads it. @throws NativeError INVALID_ARGUMENT */
export function nativeForward(
  request: Omit<ForwardRequest, "sequences"> & { sequences: readonly (ForwardSequence | TextSequence)[] },
  hidden: number,
): object {
  const { logits = "none", captures = [], positions, sequences, half, maxBytes } = request;
  for (const { point } of captures) checkPoint(point);
  if (!Array.isArray(sequences)) throw invalid("Sequences must be an array.");
  checkInteger("maxBytes", maxBytes, 0);
  return {
    captures,
    ...(half !== undefined && { half }),
    ...(maxBytes !== undefined && { maxBytes }),
    sequences: sequences.map(({ edits, ...text }) => ({
      ...("text" in text ? text : { tokens: tokenIds(text.tokens) }),
      edits: nativeEdits(edits, hidden),
    })),
    ...(positions && { positions: indices(positions) }),
    ...(typeof logits === "string" ? { logits } : { logits: "positions", logitPositions: indices(logits) }),
  };
}

function indices(list: unknown): Int32Array {
  if (list instanceof Int32Array && list.length > 0) return list;
  throw invalid("Positions must be an Int32Array with at least one entry.");
}

/** The addon's result. */
export interface NativeForward extends Omit<ForwardResult, "logits"> {
  logits?: Float32Array | Uint16Array;
}

/**
 * Forward passes over whole texts: captured rows of any points, logits, and edits per text. Texts are packed into batches, and
 * one longer than `nBatch` is computed in chunks. Clears the context's sequence.
 * @throws NativeError INVALID_ARGUMENT, LAYER_OUT_OF_RANGE, TOKEN_LIMIT, UNSUPPORTED_ARCHITECTURE, COMPUTE, CANCELLED, …
 */
export async function forward(
  passes: Passes,
  request: ForwardRequest & { signal?: AbortSignal },
): Promise<ForwardResult> {
  const { signal, ...rest } = request;
  const found = await passes.run<NativeForward>("forward", nativeForward(rest, passes.hidden), signal);
  const { logits, ...others } = found;
  if (logits === undefined) return others;
  const counts = { none: 0, last: rest.sequences.length, all: tokenCount(rest.sequences) };
  const rows =
    typeof rest.logits === "object"
      ? rest.logits.length * rest.sequences.length
      : counts[rest.logits ?? "none"];
  return { ...others, logits: ndarray(logits, [rows, logits.length / rows]) };
}

function tokenCount(sequences: readonly ForwardSequence[]): number {
  return sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
}
