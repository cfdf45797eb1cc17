import type { NativeCancelToken } from "./binding.js";
import { cancellable } from "./cancel.js";
import { checkInteger, invalid } from "./check.js";
import type { WeightType } from "./dictionary.js";
import { binding } from "./load.js";
import { SerialQueue } from "./serial.js";

/** Rows that lie one after another in a file. */
export interface RowPiece {
  path: string;
  /** Byte of the file at which the first row begins. */
  offset: number;
  type: WeightType;
  /** What each row is used for: 0 nothing, 1 training, 2 evaluation. */
  uses: Uint8Array;
}

/** native/dictionaries/sparse_model.h says what each computes, and which paper it is from. */
export type DictionaryArchitecture = "relu" | "topk" | "batchtopk" | "jumprelu";

/** How a dictionary is trained; native/dictionaries/dictionary_trainer.h says what each setting does. */
export interface DictionaryTraining {
  pieces: readonly RowPiece[];
  architecture: DictionaryArchitecture;
  hidden: number;
  features: number;
  /** For `topk` and `batchtopk`. */
  k: number;
  /** For `jumprelu`. */
  bandwidth: number;
  steps: number;
  /** Rows of a step. */
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
  /** Of the encoder's rows; of the decoder's, too, for `relu`. Others have decoder rows of length 1 throughout. */
  initialNorm: number;
  initialThreshold: number;
  /** A feature that has not fired for more steps is dead; the auxiliary loss takes `auxK` of them in each row. */
  deadAfter: number;
  auxK: number;
  auxWeight: number;
  /** Rows that an evaluation reads at most. */
  heldOut: number;
  threads?: number;
  /** What {@link DictionaryTrainer.state} gave, of a trainer with the same settings: goes on behind it. */
  state?: Readonly<Record<string, Float32Array>>;
}

/** Means over the steps that were run, of rows as they enter: (x - mean) / scale. */
export interface StepFigures {
  stepsDone: number;
  /** Per element. */
  mse: number;
  /** Features active in a row. */
  active: number;
  /** Features that were dead before the last step. */
  dead: number;
}

export interface DictionaryEvaluation {
  rows: number;
  mse: number;
  /** NaN where the held-out rows hardly differ. */
  explainedVariance: number;
  active: number;
  /** Features active in none of them. */
  dead: number;
  /** Share of the rows in which each feature is active. [features] */
  frequency: Float32Array;
  /** Mean activation over all the rows, that of {@link DictionaryWeights}. [features] */
  mean: Float32Array;
}

export interface TrainingError {
  rows: number;
  /** Per element. */
  mse: number;
}

/** A held-out row: which of the pieces, and which of its rows. */
export interface StrongRow {
  piece: number;
  row: number;
  activation: number;
}

/**
 * h = encoder ((x - mean) / scale) + encoderBias; (x' - mean) / scale = f decoder + decoderBias, f what h becomes: for
 * `batchtopk` and `jumprelu` h where it exceeds the threshold. Decoder rows have length 1, so that an activation is the
 * length that it adds.
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
 * A sparse dictionary that is trained on rows in files, step by step. Rows are mapped and streamed in a shuffled order,
 * never all in memory; the same settings give the same numbers, on any number of threads and after a pause.
 */
export class DictionaryTrainer {
  readonly #native: NativeTrainer;
  readonly #queue = new SerialQueue("trainer");

  private constructor(native: NativeTrainer) {
    this.#native = native;
  }

  /** @throws NativeError INVALID_ARGUMENT, CANCELLED, COMPUTE (a row is not finite), OUT_OF_MEMORY */
  static async open(training: DictionaryTraining, { signal }: Options = {}): Promise<DictionaryTrainer> {
    for (const name of ["hidden", "features", "batch", "heldOut"] as const) {
      checkInteger(name, training[name] ?? null, 1);
    }
    checkInteger("k", training.k ?? null, 0);
    checkInteger("threads", training.threads, 1);
    for (const { uses } of training.pieces) {
      if (!(uses instanceof Uint8Array))
        throw invalid("uses must be a Uint8Array with an entry for each row.");
    }
    const native = await cancellable(signal, (cancel: NativeCancelToken) =>
      binding<TrainerBinding>().openDictionaryTrainer({ ...training, cancel }),
    );
    return new DictionaryTrainer(native);
  }

  /** Rows to train on, and held-out ones. */
  get rows(): { train: number; heldOut: number } {
    const { trainRows, heldOutRows } = this.#native.info;
    return { train: trainRows, heldOut: heldOutRows };
  }

  /**
   * Runs the next steps, no more than there are left.
   * @throws NativeError CANCELLED, COMPUTE (a row or the error is not finite), CLOSED
   */
  run(
    steps: number,
    { signal, onProgress }: Options & { onProgress?: (done: number, total: number) => void } = {},
  ): Promise<StepFigures> {
    return this.#queue.run(() =>
      cancellable(signal, (cancel) => this.#native.run({ steps, onProgress, cancel })),
    );
  }

  /** How well held-out rows are rebuilt. */
  evaluate({ signal }: Options = {}): Promise<DictionaryEvaluation> {
    return this.#queue.run(() => cancellable(signal, (cancel) => this.#native.evaluate({ cancel })));
  }

  /** How well training rows are rebuilt by now: all of them, or as many of the shuffled order as an evaluation reads. */
  trainError({ signal }: Options = {}): Promise<TrainingError> {
    return this.#queue.run(() => cancellable(signal, (cancel) => this.#native.trainError({ cancel })));
  }

  /** The held-out rows in which each of some features is strongest, at most `count` of each. */
  strongest(features: readonly number[], count: number, { signal }: Options = {}): Promise<StrongRow[][]> {
    return this.#queue.run(() =>
      cancellable(signal, (cancel) => this.#native.strongest({ features, count, cancel })),
    );
  }

  weights(): Promise<DictionaryWeights> {
    return this.#queue.run(() => this.#native.weights());
  }

  /** Everything that the next step depends on. */
  state(): Promise<Record<string, Float32Array>> {
    return this.#queue.run(() => this.#native.state());
  }

  close(): Promise<void> {
    return this.#queue.close(() => this.#native.close());
  }
}
