import { checkInteger, tokenIds } from "../check.js";
import type { Passes } from "./experiment.js";

/** The content of the marked place of a prompt: a row instead of a token's embedding, a token, or nothing. */
export interface Filling {
  row?: Float32Array;
  token?: number;
}

export interface ExplainRequest {
  /** Token ids before and after the place. */
  before: Int32Array;
  after: Int32Array;
  /** Answered independently. */
  fillings: readonly Filling[];
  /** Per answer. */
  maxTokens: number;
  /** Answers per filling. Default 1. */
  samples?: number;
  /** With `draws`: the divisor of logits. */
  temperature?: number;
  /** [samples, maxTokens], uniform from 0 to below 1, for sampling each token. Default: greedy. */
  draws?: Float64Array;
  /** Return the logits of each answer's first token. */
  logits?: boolean;
  signal?: AbortSignal;
  /** Counts tokens of answers. */
  onProgress?: (done: number, total: number) => void;
}

/** The answers to one filling; `ended` is false at `maxTokens`. Logits are float32 [vocabulary]. */
export interface Explanation {
  logits?: Float32Array;
  answers: Array<{ tokens: Int32Array; ended: boolean }>;
}

/**
 * Whether a row can replace a token's embedding: whether the embedding of a token as a row gives the same logits as the
 * token, to the bit. The graph multiplies embeddings of tokens, but not rows, by `tokenScale` (1 for most models).
 */
export interface EmbeddingInput {
  supported: boolean;
  /** One sentence, when not supported. */
  reason: string;
  tokenScale: number;
}

/** Whether rows can replace embeddings of tokens. Tested once; clears the context's sequence then. */
export function embeddingInput(passes: Passes): Promise<EmbeddingInput> {
  return passes.run("embeddingInput", {});
}

/**
 * Generates answers to a prompt in which a row replaces a token's embedding. The tokens before it, the row and the tokens
 * after it are separate passes. Clears the context's sequence.
 * @throws NativeError UNSUPPORTED_ARCHITECTURE if {@link embeddingInput} is not supported, TOKEN_LIMIT, INVALID_ARGUMENT, …
 */
export async function explain(passes: Passes, request: ExplainRequest): Promise<Explanation[]> {
  const { signal, ...rest } = request;
  checkInteger("maxTokens", request.maxTokens ?? null, 1);
  checkInteger("samples", request.samples, 1);
  tokenIds(request.before);
  tokenIds(request.after);
  return passes.run("explain", rest, signal);
}
