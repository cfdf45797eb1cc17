import type { NativeCancelToken } from "./binding.js";
import { cancellable } from "./cancel.js";
import { checkInteger, invalid } from "./check.js";
import type { WeightType } from "./dictionary.js";
import { binding } from "./load.js";
import { SerialQueue } from "./serial.js";

/** Contiguous rows in a file. */
export interface RowPiece {
  path: string;
  /** Byte offset of the first row. */
  offset: number;
  /** For a transcoder: byte offset of the first row's target, of the same type. */
  targetOffset?: number;
  type: WeightType;
  /** The use of each row: 0 none, 1 training, 2 evaluation. */
  uses: Uint8Array;
}

/** native/dictionaries/sparse_model.h describes each with its paper. */
export type DictionaryArchitecture = "relu" | "topk" | "batchtopk" | "jumprelu";

/** Settings of a training; native/dictionaries/dictionary_trainer.h describes each. */
export interface DictionaryTraining {
  pieces: readonly RowPiece[];
  architecture: DictionaryArchitecture;
  hidden: number;
  features: number;
  /** For `topk` and `batchtopk`. */
  k: number;
  /** For `jumprelu`. */
  bandwidth: number;
  /** A transcoder: it predicts each row's target. */
  transcodes?: boolean;
  /** With a linear skip term from its input to its output. */
  skip?: boolean;
  steps: number;
  /** Rows per step. */
  batch: number;
  seed: number;
  learningRate: number;
  /** Steps over which the learning rate rises from 0, and falls to 0 at the end. */
  warmup: number;
  decay: number;
  /** Weight of the penalty, and the steps over which it rises from 0. */
  sparsity: number;
  sparsityWarmup: number;
  /** Adam's. */
  epsilon?: number;
  /** Length of the encoder's rows and, for `relu`, the decoder's. Other architectures have decoder rows of length 1. */
  initialNorm: number;
  initialThreshold: number;
  /** A feature that has not fired for more steps is dead; the auxiliary loss uses `auxK` of them per row. */
  deadAfter: number;
  auxK: number;
  auxWeight: number;
  /** The most rows of an evaluation. */
  heldOut: number;
  threads?: number;
  /** Continues from {@link DictionaryTrainer.state} of a trainer with the same settings. */
  state?: Readonly<Record<string, Float32Array>>;
}

/** Means over the steps of a run, for normalised rows (x - mean) / scale. */
export interface StepFigures {
  stepsDone: number;
  /** Per element. */
  mse: number;
  /** Mean number of active features per row. */
  active: number;
  /** Features that were dead before the last step. */
  dead: number;
}

export interface DictionaryEvaluation {
  rows: number;
  mse: number;
  /** NaN if the held-out rows hardly differ. */
  explainedVariance: number;
  active: number;
  /** Features that are active in no row. */
  dead: number;
  /** Share of rows in which each feature is active. [features] */
  frequency: Float32Array;
  /** Mean activation over all rows, for {@link DictionaryWeights}. [features] */
  mean: Float32Array;
}

export interface TrainingError {
  rows: number;
  /** Per element. */
  mse: number;
}

/** A held-out row: indices of the piece and of its row. */
export interface StrongRow {
  piece: number;
  row: number;
  activation: number;
}

/**
 * h = encoder ((x - mean) / scale) + encoderBias; (x' - mean) / scale = f decoder + decoderBias, with activations f of h:
 * for `batchtopk` and `jumprelu`, h if it exceeds the threshold. Decoder rows have length 1, so an activation is the length
 * that it adds. A transcoder's output is (y' - targetMean) / targetScale = f decoder + decoderBias + skip (x - mean) / scale.
 */
export interface DictionaryWeights {
  /** [features, hidden] */
  encoder: Float32Array;
  encoderBias: Float32Array;
  /** [features, hidden] */
  decoder: Float32Array;
  decoderBias: Float32Array;
  threshold?: Float32Array;
  /** [hidden] */
  mean: Float32Array;
  scale: number;
  /** [hidden], of a transcoder's targets. */
  targetMean?: Float32Array;
  targetScale?: number;
  /** [hidden, hidden], by output. */
  skip?: Float32Array;
}

interface Options {
  signal?: AbortSignal | undefined;
}

interface NativeTrainer {
  readonly info: { trainRows: number; heldOutRows: number };
  run(options: object): Promise<StepFigures>;
  evaluate(options: object): Promise<DictionaryEvaluation>;
  trainError(options: object): Promise<TrainingError>;
  strongest(options: object): Promise<StrongRow[][]>;
  weights(): Promise<DictionaryWeights>;
  state(): Promise<Record<string, Float32Array>>;
  close(): Promise<void>;
}

interface TrainerBinding {
  openDictionaryTrainer(options: object): Promise<NativeTrainer>;
}

/**
 * Trains a sparse dictionary on rows in files, step by step. Rows are mapped and streamed in a shuffled order, never all in
 * memory; results do not depend on the number of threads or on interruptions.
 */
export class DictionaryTrainer {
  readonly #queue = new SerialQueue("trainer");

  private constructor(private readonly native: NativeTrainer) {}

  /** @throws NativeError INVALID_ARGUMENT, CANCELLED, COMPUTE (a row is not finite), OUT_OF_MEMORY */
  static async open(training: DictionaryTraining, { signal }: Options = {}): Promise<DictionaryTrainer> {
    for (const name of ["hidden", "features", "batch", "heldOut"] as const) {
      checkInteger(name, training[name] ?? null, 1);
    }
    checkInteger("k", training.k ?? null, 0);
    checkInteger("threads", training.threads, 1);
    if (training.pieces.some(({ uses }) => !(uses instanceof Uint8Array)))
      throw invalid("uses must be a Uint8Array with an entry for each row.");
    const native = await cancellable(signal, (cancel: NativeCancelToken) =>
      binding<TrainerBinding>().openDictionaryTrainer({ ...training, cancel }),
    );
    return new DictionaryTrainer(native);
  }

  get rows(): { train: number; heldOut: number } {
    const { trainRows, heldOutRows } = this.native.info;
    return { train: trainRows, heldOut: heldOutRows };
  }

  /**
   * Runs the next steps, at most those that remain.
   * @throws NativeError CANCELLED, COMPUTE (a row or the error is not finite), CLOSED
   */
  run(
    steps: number,
    { signal, onProgress }: Options & { onProgress?: (done: number, total: number) => void } = {},
  ): Promise<StepFigures> {
    return this.#run(signal, (cancel) => this.native.run({ steps, onProgress, cancel }));
  }

  /** Evaluates the reconstruction of held-out rows. */
  evaluate({ signal }: Options = {}): Promise<DictionaryEvaluation> {
    return this.#run(signal, (cancel) => this.native.evaluate({ cancel }));
  }

  /** Reconstruction error on training rows: the first in shuffled order, up to the most rows of an evaluation. */
  trainError({ signal }: Options = {}): Promise<TrainingError> {
    return this.#run(signal, (cancel) => this.native.trainError({ cancel }));
  }

  /** The held-out rows in which each of the features is strongest, at most `count` each. */
  strongest(features: readonly number[], count: number, { signal }: Options = {}): Promise<StrongRow[][]> {
    return this.#run(signal, (cancel) => this.native.strongest({ features, count, cancel }));
  }

  weights(): Promise<DictionaryWeights> {
    return this.#queue.run(() => this.native.weights());
  }

  /** Everything that the next step depends on. */
  state(): Promise<Record<string, Float32Array>> {
    return this.#queue.run(() => this.native.state());
  }

  close(): Promise<void> {
    return this.#queue.close(() => this.native.close());
  }

  #run<T>(signal: AbortSignal | undefined, call: (cancel: NativeCancelToken) => Promise<T>): Promise<T> {
    return this.#queue.run(() => cancellable(signal, call));
  }
}
