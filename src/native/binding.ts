/** The addon as native/napi/ exports it: plain data without validation, which model.ts, context.ts and others add. */
import type { Point } from "./points.js";

export interface NativeCancelToken {
  cancel(): void;
}

/** Without its experiments, which the files in experiments/ call. */
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
    points: Array<
      { point: Point; supported: boolean; reason: string } & Record<
        "layers" | "widths" | "heads" | "experts",
        Int32Array
      >
    >;
    parallel: boolean;
    normed: boolean;
    scaled: boolean;
  };
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
  /** Hidden size: the length of a row of a block output. */
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
  /** The devices of the blocks; a block whose weights are on several devices counts for the host. */
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

export interface BackendInfo {
  backend: Backend;
  /** Version of llama.cpp. */
  llamaCpp: string;
  /** Processor features that ggml was built for and found. */
  systemInfo: string;
  /** The processor level whose kernels compute, if the addon has those of several. */
  level?: string;
  devices: Device[];
}

/** The memory of one device and the needs of a model and its context, in bytes. */
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
  dequantise(options: object): Promise<void>;
  estimateMemory(options: object): Promise<DeviceMemory[]>;
  CancelToken: new () => NativeCancelToken;
  release(buffer: ArrayBuffer): void;
  countedRows(options: { norms: Float64Array; bos: number }): Uint8Array;
  narrow(options: { values: Float32Array; type: string }): Promise<Uint16Array>;
  /** Cancels all operations of this thread and waits for them. Later ones never settle. */
  endOperations(): void;
  openModel(options: object): Promise<NativeModel>;
}

/** The number of activations that a mean excludes. */
export interface ExcludedRows {
  readonly bos: number;
  /** Norm above ten times the median of the text, without BOS. */
  readonly outliers: number;
}
