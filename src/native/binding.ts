/**
 * The addon as native/napi/ exports it, one to one. Everything here is plain data; validation, promises that
 * wait for each other and friendly types are the business of model.ts and context.ts.
 */
import type { EditEffect } from "./edit.js";
import type { Point } from "./points.js";

export interface NativeCancelToken {
  cancel(): void;
}

export interface NativeTop {
  k: number;
  tokenIds: Int32Array;
  probabilities: Float32Array;
  /** [rows], of the lens's targets: 0 where a row has none. */
  targetProbabilities?: Float32Array;
  /** [rows]; 1 is the most probable token, ties by token id; 0 where a row has no target. */
  targetRanks?: Int32Array;
}

export interface NativeReading extends NativeTop {
  /** [rows], nats. */
  entropies?: Float32Array;
  /** [rows], nats: KL of the model's output from what the lens reads. */
  divergences?: Float32Array;
}

export interface NativeLayer {
  layer: number;
  point: Point;
  rows: number;
  width: number;
  norms: Float32Array;
  states?: Float32Array;
  lens?: NativeTop;
}

export interface NativeAttention {
  layer: number;
  heads: Int32Array;
  weights: Float32Array;
  apart: number;
}

export interface NativeRouting {
  layer: number;
  experts: number;
  used: number;
  chosen: Int32Array;
  weights: Float32Array;
}

export interface NativeAdvanceResult {
  attention?: NativeAttention[];
  routing?: NativeRouting[];
  layers: NativeLayer[];
  next?: NativeTop;
  logits?: Float32Array;
  logProbabilities?: Float64Array;
  effects?: EditEffect[];
}

export interface NativeSweepRow {
  probability: number;
  continuation: Int32Array;
  finite: boolean;
  effects: EditEffect[];
}

export interface NativeSweepTrial {
  target: number;
  baseline: NativeSweepRow;
  rows: NativeSweepRow[];
}

export interface NativePatchSweep {
  target: number;
  foil: number;
  clean: number;
  corrupted: number;
  restored: number;
  patched: Float64Array;
  control?: Float64Array;
  changeLength: Float64Array;
  rowLength: Float64Array;
  computedSites: number;
  computedTokens: number;
}

export interface NativeEmbeddingInput {
  supported: boolean;
  reason: string;
  tokenScale: number;
}

export interface NativeExplanation {
  logits?: Float32Array;
  answers: Array<{ tokens: Int32Array; ended: boolean }>;
}

export interface NativeContext {
  readonly info: {
    nCtx: number;
    nBatch: number;
    causal: boolean;
    supported: boolean;
    reason: string;
    sidePath: string;
    lensSupported: boolean;
    lensReason: string;
    tensorNames: string[];
    points: {
      point: Point;
      supported: boolean;
      reason: string;
      layers: Int32Array;
      widths: Int32Array;
      heads: Int32Array;
      experts: Int32Array;
    }[];
    parallel: boolean;
    normed: boolean;
    scaled: boolean;
  };
  advance(request: object): Promise<NativeAdvanceResult>;
  features(request: object): Promise<Array<{ layer: number; states: Float32Array; excluded: ExcludedRows }>>;
  sweep(request: object): Promise<NativeSweepTrial[]>;
  patchSweep(request: object): Promise<NativePatchSweep>;
  embeddingInput(request: object): Promise<NativeEmbeddingInput>;
  explain(request: object): Promise<NativeExplanation[]>;
  lensLogits(request: object): Promise<Float32Array>;
  readLens(request: object): Promise<NativeReading[]>;
  logitDirection(request: object): Promise<{ direction: Float64Array; constant: number }>;
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** Metadata of a loaded model. */
export interface ModelInfo {
  readonly path: string;
  readonly architecture: string;
  readonly name: string;
  /** llama.cpp's name of the file type, e.g. "F16" or "Q4_K - Medium". */
  readonly quantization: string;
  /** Jinja template of the chat format; empty when the file has none. */
  readonly chatTemplate: string;
  readonly nLayer: number;
  /** Hidden size: the length of one block output row. */
  readonly nEmbd: number;
  readonly nVocab: number;
  readonly nCtxTrain: number;
  /** Sliding attention window, 0 for none. */
  readonly nSwa: number;
  readonly nParams: number;
  /** Bytes of all tensors. */
  readonly bytes: number;
  readonly addBos: boolean;
  readonly hasEncoder: boolean;
  readonly hasDecoder: boolean;
  readonly recurrent: boolean;
  readonly hybrid: boolean;
  /** Tokens that end a text. */
  readonly endOfGeneration: Int32Array;
  /** What holds the blocks; a block whose weights are on several devices counts for the host. */
  readonly devices: ReadonlyArray<{
    readonly name: string;
    readonly description: string;
    readonly host: boolean;
    readonly blocks: number;
  }>;
}

export interface NativeModel {
  readonly info: ModelInfo;
  tokenize(text: string, special: boolean, parseSpecial: boolean): Promise<Int32Array>;
  pieces(tokens: Int32Array): Promise<string[]>;
  detokenize(tokens: Int32Array): Promise<string>;
  createContext(options: object): Promise<NativeContext>;
  close(): Promise<void>;
}

export type Backend = "cpu" | "cuda" | "metal" | "vulkan";

export interface Device {
  name: string;
  description: string;
  kind: "cpu" | "gpu" | "igpu" | "accelerator";
  memoryFree: number;
  memoryTotal: number;
}

/** What this build of the addon computes with. */
export interface BackendInfo {
  backend: Backend;
  /** Version of llama.cpp inside. */
  llamaCpp: string;
  /** Processor features that ggml was built for and found. */
  systemInfo: string;
  devices: Device[];
}

/** What a model and its context would take on one device; bytes. */
export interface DeviceMemory {
  /** Name of the device; `host` for the machine's own memory. */
  name: string;
  host: boolean;
  free: number;
  total: number;
  weights: number;
  /** K/V cache, or the state of a recurrent model. */
  context: number;
  /** Buffers of the largest graph. */
  compute: number;
}

export interface NativeBinding {
  backendInfo(): BackendInfo;
  connectRemotes(endpoints: readonly string[]): Promise<void>;
  quantise(options: object): Promise<void>;
  estimateMemory(options: object): Promise<DeviceMemory[]>;
  CancelToken: new () => NativeCancelToken;
  release(buffer: ArrayBuffer): void;
  countedRows(options: { norms: Float64Array; bos: number }): Uint8Array;
  narrow(options: { values: Float32Array; type: string }): Promise<Uint16Array>;
  /** Cancels every operation of this thread and waits for it to end. Later ones never settle. */
  endOperations(): void;
  openModel(options: object): Promise<NativeModel>;
}

/** Activations that a mean leaves out. */
export interface ExcludedRows {
  readonly bos: number;
  /** Norm above ten times the median of their text's, BOS aside. */
  readonly outliers: number;
}
