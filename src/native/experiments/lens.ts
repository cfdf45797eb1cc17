import { checkInteger, tokenIds } from "../check.js";
import type { Passes, TopTokens } from "./experiment.js";

/**
 * A lens's translation in a file: where its arrays lie, in bytes from the file's start. A row h of a block output becomes
 * matrix . h + bias, plus h itself where `residual`; then the model's own final norm and head.
 */
export interface TranslatorPlaces {
  path: string;
  /** The matrix is IEEE binary16, else float32; a bias is float32. */
  half: boolean;
  /** [hidden, hidden], a row an output. */
  matrix: number;
  /** [hidden]; none where left out. */
  bias?: number;
  residual: boolean;
}

export interface LensRequest {
  /** float32 [rows, hidden] of each place; without a translator, the logit lens reads them as they are. */
  places: ReadonlyArray<{ states: Float32Array; translator?: TranslatorPlaces }>;
  /** The last block's rows: how far is each reading from what the model says? */
  output?: Float32Array;
  top: number;
  /** A token id a row, whose place is told; negative: none. */
  targets?: Int32Array;
  /** Tell each reading's entropy. */
  entropy?: boolean;
  signal?: AbortSignal;
}

/**
 * What a lens reads of one place's rows: the most probable tokens, and where asked for, each row's entropy and its distance
 * from the model's output, KL(output, reading), both in nats.
 */
export interface LensReading extends TopTokens {
  /** [rows], nats. */
  entropies?: Float32Array;
  /** [rows], nats: KL of the model's output from what the lens reads. */
  divergences?: Float32Array;
}

/**
 * What the final norm and the output head make of rows of a block output.
 * @param rows float32 [rows, hidden]
 * @returns logits, [rows, vocabulary]
 * @throws NativeError UNSUPPORTED_ARCHITECTURE where there is no logit lens
 */
export function lensLogits(passes: Passes, rows: Float32Array): Promise<Float32Array> {
  return passes.run("lensLogits", { rows });
}

/**
 * Reads rows of several places through a lens: the most probable tokens of each row, its entropy, its distance from the
 * model's output. The head is computed for all places at once.
 * @returns a reading a place
 * @throws NativeError UNSUPPORTED_ARCHITECTURE where there is no logit lens
 */
export async function readLens(passes: Passes, request: LensRequest): Promise<LensReading[]> {
  const { signal, ...rest } = request;
  checkInteger("top", request.top ?? null, 1);
  if (request.targets !== undefined) tokenIds(request.targets);
  return passes.run("readLens", rest, signal);
}

export interface LogitDirection {
  /** [hidden]. */
  direction: Float64Array;
  constant: number;
}

/**
 * How a token's logit depends on the last block's output, with the final norm's scale kept as it is for that state:
 * logit = direction . state + constant. In float64, from the weights as they are, without any product's rounding.
 * @param state float32 [hidden]
 * @throws NativeError UNSUPPORTED_ARCHITECTURE where the way from there to the logits is not linear then
 */
export async function logitDirection(
  passes: Passes,
  state: Float32Array,
  token: number,
): Promise<LogitDirection> {
  checkInteger("token", token ?? null, 0);
  return passes.run("logitDirection", { state, token });
}
