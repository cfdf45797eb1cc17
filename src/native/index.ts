/** The native core: load a GGUF, read and change its activations. */
import type { BackendInfo } from "./binding.js";
import { binding } from "./load.js";

export type { Backend, BackendInfo, Device, DeviceMemory, ModelInfo } from "./binding.js";
export { Context, type ContextOptions, type PointSupport, type Support } from "./context.js";
export {
  type DictionaryPlaces,
  decodeRows,
  encodeRows,
  type SparseRows,
  strongestFeatures,
  type WeightType,
} from "./dictionary.js";
export {
  type DictionaryArchitecture,
  type DictionaryEvaluation,
  DictionaryTrainer,
  type DictionaryTraining,
  type DictionaryWeights,
  type RowPiece,
  type StepFigures,
  type StrongRow,
} from "./dictionary-trainer.js";
export type { Edit, EditEffect, FeaturePlace, Positions, StrengthUnit } from "./edit.js";
export { NativeError, type NativeErrorCode, nativeErrorCodes } from "./error.js";
export type * from "./experiments/advance.js";
export type * from "./experiments/attribution.js";
export type * from "./experiments/attribution-graph.js";
export type { LensReading, TopTokens, TranslatorPlaces } from "./experiments/experiment.js";
export type * from "./experiments/explain.js";
export type * from "./experiments/features.js";
export type * from "./experiments/forward.js";
export type * from "./experiments/frozen-pass.js";
export type * from "./experiments/lens.js";
export type * from "./experiments/patch-sweep.js";
export { patchCells, patchPlaces } from "./experiments/patch-sweep.js";
export type * from "./experiments/sweep.js";
export { sweepCells } from "./experiments/sweep.js";
export type * from "./experiments/transcoder-graph.js";
export { compileCommand } from "./installed.js";
export { addonFiles, addonInUse } from "./load.js";
export {
  connectRemotes,
  dequantise,
  estimateMemory,
  type MemoryQuestion,
  type Quantisation,
  quantise,
} from "./machine.js";
export { Model, type OpenOptions, type TokenizeOptions } from "./model.js";
export { countedRows, type NarrowType, narrow } from "./numbers.js";
export { type Point, points, streamPoints } from "./points.js";
export { threadsFor } from "./threads.js";
export {
  type Features,
  initialSaeWeights,
  type ProbeFigures,
  type ProbeTraining,
  type SaeFeature,
  type SaeTraining,
  type SaeWeights,
  type TrainedProbe,
  type TrainedSae,
  type TrainingOptions,
  type TrainingSet,
  trainProbe,
  trainSae,
} from "./train.js";

/** Backend, versions and devices of this build. */
export function backendInfo(): BackendInfo {
  return binding().backendInfo();
}

/**
 * Frees the memory of rows immediately instead of at the next garbage collection: a chunk of a prompt at eight layers may be
 * 128 MiB. The array is empty afterwards.
 */
export function release(rows: Float32Array): void {
  binding().release(rows.buffer as ArrayBuffer);
}
