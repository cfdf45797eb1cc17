import type { DeviceMemory } from "./binding.js";
import type { EngineOptions } from "./engine.js";
import { NativeError } from "./error.js";
import { binding } from "./load.js";

/** The layout that is asked about: the options with which a model will be opened. */
export type MemoryQuestion = Pick<
  EngineOptions,
  "path" | "gpuLayers" | "ctxSize" | "parallel" | "threads" | "batch"
> & { embeddings?: boolean };

/**
 * What a model and its context would take on each device, laid out by llama.cpp itself without allocating either.
 * Reads headers only. In place of a Lab's many small contexts, ask for one of the same tokens.
 * @throws NativeError MODEL_LOAD
 */
export async function estimateMemory({ embeddings, ...rest }: MemoryQuestion): Promise<DeviceMemory[]> {
  try {
    const flags = { embeddings: embeddings === undefined ? -1 : Number(embeddings) };
    return await binding().estimateMemory({ ...rest, ...flags });
  } catch (error) {
    throw NativeError.from(error);
  }
}

/**
 * Adds the devices of llama.cpp's rpc-servers, `address:port`, to those that models of this process are spread over.
 * llama.cpp ends the process when a server cannot be reached, now or later: look first, and have somebody watch.
 * @throws NativeError INVALID_ARGUMENT
 */
export async function connectRemotes(endpoints: readonly string[]): Promise<void> {
  try {
    await binding().connectRemotes(endpoints);
  } catch (error) {
    throw NativeError.from(error);
  }
}

/** Mixtures of types that llama.cpp keeps weights in. */
export type Quantisation = "Q8_0" | "Q6_K" | "Q5_K_M" | "Q4_K_M";

/**
 * Writes a model's file anew with its weights in fewer bits, as llama.cpp's llama-quantize does, without an importance
 * matrix. Weights of fewer than 16 bits are refused: what they lost before would count as this form's loss.
 * @throws NativeError MODEL_LOAD
 */
export async function quantise(options: {
  from: string;
  to: string;
  form: Quantisation;
  threads?: number;
}): Promise<void> {
  try {
    await binding().quantise(options);
  } catch (error) {
    throw NativeError.from(error);
  }
}
