import type { DeviceMemory } from "./binding.js";
import { flag } from "./check.js";
import type { EngineOptions } from "./engine.js";
import { NativeError } from "./error.js";
import { binding } from "./load.js";

/** The options with which a model will be opened. */
export type MemoryQuestion = Pick<
  EngineOptions,
  "path" | "gpuLayers" | "ctxSize" | "parallel" | "threads" | "batch"
> & { embeddings?: boolean };

/**
 * The memory of a model and its context on each device, in llama.cpp's layout, without allocating either. Reads headers
 * only. For a Lab's many small contexts, ask for one with the same total number of tokens.
 * @throws NativeError MODEL_LOAD
 */
export function estimateMemory({ embeddings, ...rest }: MemoryQuestion): Promise<DeviceMemory[]> {
  return NativeError.translate(() => binding().estimateMemory({ ...rest, embeddings: flag(embeddings) }));
}

/**
 * Adds the devices of llama.cpp's rpc-servers, `address:port`, to this process. llama.cpp ends the process if a server
 * cannot be reached, now or later: check first, and supervise the process.
 * @throws NativeError INVALID_ARGUMENT
 */
export function connectRemotes(endpoints: readonly string[]): Promise<void> {
  return NativeError.translate(() => binding().connectRemotes(endpoints));
}

/** llama.cpp's mixtures of weight types. */
export type Quantisation = "Q8_0" | "Q6_K" | "Q5_K_M" | "Q4_K_M";

/**
 * Writes a copy of a model with quantised weights, as llama-quantize does without an importance matrix. Rejects weights of
 * fewer than 16 bits: their earlier loss would count as this form's.
 * @throws NativeError MODEL_LOAD
 */
export function quantise(options: {
  from: string;
  to: string;
  form: Quantisation;
  threads?: number;
}): Promise<void> {
  return NativeError.translate(() => binding().quantise(options));
}

/**
 * Appends the numbers of a weight in a GGUF file to another file, as float32, converted by ggml's own routines.
 * @throws NativeError INVALID_ARGUMENT for types that ggml cannot convert, or if a file is too short or cannot be written
 */
export function dequantise(options: {
  from: string;
  to: string;
  /** Bytes from the start of the file. */
  offset: number;
  /** ggml's number. */
  type: number;
  /** Numbers of a row. */
  row: number;
  rows: number;
}): Promise<void> {
  return NativeError.translate(() => binding().dequantise(options));
}
