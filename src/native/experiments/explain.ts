import { checkInteger, tokenIds } from "../check.js";
import type { Passes } from "./experiment.js";

/** What stands in the marked place of a prompt: a row in a token's embedding's place, a typed token, or nothing. */
export interface Filling {
  row?: Float32Array;
  token?: number;
}

export interface ExplainRequest {
  /** Token ids before the place and behind it. */
  before: Int32Array;
  after: Int32Array;
  /** Each is answered as if it were the only one. */
  fillings: readonly Filling[];
  /** Of each answer. */
  maxTokens: number;
  /** Answers to each filling. Default 1. */
  samples?: number;
  /** With `draws`: what logits are divided by. */
  temperature?: number;
  /** [samples, maxTokens], uniform from 0 to below 1: where each token is drawn. Default: the most probable token. */
  draws?: Float64Array;
  /** Return the logits of each answer's first token. */
  logits?: boolean;
  signal?: AbortSignal;
  /** Counts tokens of answers. */
  onProgress?: (done: number, total: number) => void;
}

/** What the model says to one filling: `ended` by itself, or cut at `maxTokens`; logits are float32 [vocabulary]. */
export interface Explanation {
  logits?: Float32Array;
  answers: Array<{ tokens: Int32Array; ended: boolean }>;
}

/**
 * Whether a row can stand where a token's embedding does: whether a token's own embedding, put in so, gives the logits of the
 * typed token to the bit. A typed token's embedding is multiplied by `tokenScale` first, a row is not (1 for most).
 */
export interface EmbeddingInput {
  supported: boolean;
  /** One sentence, when not supported. */
  reason: string;
  tokenScale: number;
}

/** Whether rows can stand where tokens' embeddings do. Found out once; forgets the context's sequence then. */
export function embeddingInput(passes: Passes): Promise<EmbeddingInput> {
  return passes.run("embeddingInput", {});
}

/**
 * What the model says to a prompt in which a row stands in a token's embedding's place. The tokens before it, the row and
 * the tokens behind it are a pass each. Forgets the context's sequence.
 * @throws NativeError UNSUPPORTED_ARCHITECTURE where {@link embeddingInput} says no, TOKEN_LIMIT, INVALID_ARGUMENT, …
 */
export async function explain(passes: Passes, request: ExplainRequest): Promise<Explanation[]> {
  const { signal, ...rest } = request;
  checkInteger("maxTokens", request.maxTokens ?? null, 1);
  checkInteger("samples", request.samples, 1);
  tokenIds(request.before);
  tokenIds(request.after);
  return passes.run("explain", rest, signal);
}
