/** Trainers that run in the addon, on plain activations: a linear probe and a small sparse autoencoder. */
import type { NdArray } from "ndarray";
import { cancellable } from "./cancel.js";
import { checkInteger, invalid } from "./check.js";
import { binding } from "./load.js";

/** float32 [examples, hidden], or the same numbers row by row. Copied before training starts. */
export type Features = NdArray<Float32Array> | Float32Array;

/** Settings of both trainers. */
export interface TrainingSet {
  features: Features;
  /** 1 for a training example, 0 for a held-out one; both must occur. [examples] */
  train: Uint8Array;
  /** 0 to 2147483647; the same seed gives the same numbers on the same machine. Default 0. */
  seed?: number;
  /** Default: all processors, at most 16. The number does not affect the results. */
  threads?: number;
}

export interface TrainingOptions {
  /** Cancels between optimiser steps; the promise then rejects with code CANCELLED. */
  signal?: AbortSignal | undefined;
  /** Called at most every 40 ms. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

export interface ProbeTraining extends TrainingSet {
  /** 0 or 1 for each example; both must occur in the training examples. [examples] */
  labels: Uint8Array;
  /** Inverse strength of the L2 penalty, scikit-learn's C. Default 1. */
  c?: number;
  /** On the infinity norm of the gradient. Default 1e-8. */
  tolerance?: number;
  /** Also fit permuted training labels (default). Without it `shuffledLabelAccuracy` is NaN. */
  control?: boolean;
  /** Number of further permutations, fitted to 1e-3, for the spread of that control. Default 0. */
  permutations?: number;
  /**
   * A number for each example. Those of one group, such as the rows of a text, have the same label and are on the same side
   * of the split; labels are permuted among groups. Default: every example is a group. [examples]
   */
  groups?: Int32Array;
}

/** Evaluation of a probe on held-out examples, or on held-out groups by the means of their scores. */
export interface ProbeFigures {
  accuracy: number;
  /** Area under the ROC curve, ties counted half; NaN if there is only one class. */
  auc: number;
  brier: number;
  /** Accuracy of always answering the training set's more frequent label (0 when equal). */
  majorityAccuracy: number;
  /** Accuracy of a probe fitted to permuted training labels (a control for the effect of n and d alone). */
  shuffledLabelAccuracy: number;
  /** The same for each of the `permutations`, independent of the one above. float64 [permutations] */
  permutedAccuracies: Float64Array;
  /** Their AUROC. float64 [permutations] */
  permutedAucs: Float64Array;
  trainSize: number;
  testSize: number;
}

/** A probe and its evaluation, on examples. */
export interface TrainedProbe extends ProbeFigures {
  /** score = sigmoid(((x - mean) / std) . weight + bias). float64 [hidden] */
  weight: Float64Array;
  bias: number;
  /** Training mean. float64 [hidden] */
  mean: Float64Array;
  /** Training standard deviation (population), at least 0.01. float64 [hidden] */
  std: Float64Array;
  /** Probability of label 1 for every example, in the order given. float64 [examples] */
  scores: Float64Array;
  /** If groups were given. */
  groups?: ProbeFigures;
  converged: boolean;
  /** Newton steps. */
  iterations: number;
  /** Infinity norm of the gradient, recomputed for the result. */
  gradientNorm: number;
}

/** Weights of a sparse autoencoder: f = relu(encoder x + encoderBias), x' = decoder f + decoderBias. */
export interface SaeWeights {
  /** float32 [features, hidden] */
  encoderWeight: Float32Array;
  /** float32 [features] */
  encoderBias: Float32Array;
  /** float32 [hidden, features] */
  decoderWeight: Float32Array;
  /** float32 [hidden] */
  decoderBias: Float32Array;
}

export interface SaeTraining extends TrainingSet {
  /** Size of the dictionary. Default 64. */
  nFeatures?: number;
  /** Adam updates, each on all training examples. Default 100. */
  steps?: number;
  /** Weight of the L1 term. Default 0.11 sqrt(hidden). */
  l1?: number;
  /** Default 0.06 / sqrt(hidden). */
  learningRate?: number;
  /** Adam's epsilon. Default 1e-8. */
  epsilon?: number;
  /** Updates between two entries of `losses`. Default 10. */
  lossEvery?: number;
  /** Return unit decoder columns, their norms moved into the encoder (default): the same function. */
  foldDecoderNorms?: boolean;
  /** Weights to start from instead of {@link initialSaeWeights} of the seed. */
  init?: SaeWeights;
}

/** A feature on held-out examples. Activations are in units of the normalised reconstruction. */
export interface SaeFeature {
  feature: number;
  /** Mean activation. */
  mean: number;
  /** Share of examples on which it is active. */
  frequency: number;
  /** Up to 8 examples, most active first; `row` counts in all examples as given. */
  examples: Array<{ row: number; activation: number }>;
}

/** A sparse autoencoder and its evaluation. Errors are on normalised activations, (x - mean) / scale. */
export interface TrainedSae {
  weights: SaeWeights;
  /** Training mean. float32 [hidden] */
  mean: Float32Array;
  /** Scales the training examples' mean norm to sqrt(hidden). */
  scale: number;
  /** Loss on all training examples after `step` updates, with the full L1 weight: 0, every `lossEvery`, the last. */
  losses: Array<{ step: number; loss: number }>;
  /** Mean over examples and dimensions of (x' - x)^2. */
  heldOutMse: number;
  trainMse: number;
  /**
   * Held out: 1 - sum (x' - x)^2 / sum (x - mean)^2 with the mean of the held-out examples; NaN if they are within 1e-5 of
   * their length around it.
   */
  explainedVariance: number;
  /** Active features per held-out example (L0). */
  meanActive: number;
  /** Features active on no held-out example. */
  deadFeatures: number;
  deadFraction: number;
  /** The 16 of highest mean activation on held-out examples; fewer when fewer are active at all. */
  features: SaeFeature[];
  trainSize: number;
  testSize: number;
  /** Wall-clock time of the training steps. */
  seconds: number;
}

interface TrainBinding {
  trainProbe(options: object): Promise<TrainedProbe>;
  trainSae(options: object): Promise<TrainedSae>;
  initialSaeWeights(options: object): Promise<SaeWeights>;
  productRate(options: { threads: number; seconds: number }): Promise<number>;
  trainKernels(): string;
}

const native = binding<TrainBinding>;

/**
 * Fits L2-regularised logistic regression (scikit-learn's objective with C = `c`: the sum of log losses plus
 * |w|^2 / 2c, bias free) to standardised activations, in double precision and to convergence, by Newton's method: on
 * the Gram matrix when there are fewer training examples than dimensions, on the weights otherwise.
 * @throws NativeError INVALID_ARGUMENT, CANCELLED, OUT_OF_MEMORY
 */
export function trainProbe(training: ProbeTraining, options: TrainingOptions = {}): Promise<TrainedProbe> {
  return run(options, (extra) => {
    const set = trainingSet(training);
    const { labels, c, tolerance, permutations, groups } = training;
    checkBits("labels", labels, set.train.length);
    const trained = labels.filter((_, row) => set.train[row] === 1);
    if (!trained.includes(0) || !trained.includes(1)) {
      throw invalid(`Both labels must occur among the training examples, but only ${trained[0]} does.`);
    }
    checkPositive("c", c);
    checkPositive("tolerance", tolerance);
    checkInteger("permutations", permutations, 0);
    if (groups !== undefined && !(groups instanceof Int32Array && groups.length === set.train.length)) {
      throw invalid(`groups must be an Int32Array with a number for each of ${set.train.length} examples.`);
    }
    return native().trainProbe({ ...defined(training), ...set, ...extra });
  });
}

/**
 * Trains a small ReLU autoencoder with an L1 penalty: the recipe of "Training Sparse Autoencoders" (Conerly et al.,
 * Anthropic Circuits Updates, April 2024; native/dictionaries/sparse_autoencoder.h names what differs and why), with Adam
 * on all training examples at once.
 * @throws NativeError INVALID_ARGUMENT, CANCELLED, COMPUTE (the loss became infinite), OUT_OF_MEMORY
 */
export function trainSae(training: SaeTraining, options: TrainingOptions = {}): Promise<TrainedSae> {
  return run(options, (extra) => {
    const set = trainingSet(training);
    checkSizes(training);
    const { l1, learningRate, epsilon, lossEvery, nFeatures = 64, init } = training;
    if (l1 !== undefined && !(l1 >= 0 && Number.isFinite(l1)))
      throw invalid(`l1 must be at least 0, got ${l1}.`);
    checkPositive("learningRate", learningRate);
    checkPositive("epsilon", epsilon);
    checkInteger("lossEvery", lossEvery, 1);
    if (init !== undefined) checkWeights(init, nFeatures, set.hidden);
    return native().trainSae({ ...defined(training), ...set, ...extra });
  });
}

/** The random weights that {@link trainSae} starts from: decoder columns of norm 0.1, the encoder its transpose. */
export function initialSaeWeights(options: {
  hidden: number;
  nFeatures?: number;
  seed?: number;
}): Promise<SaeWeights> {
  return run({}, () => {
    checkInteger("hidden", options.hidden, 1);
    checkInteger("seed", options.seed, 0);
    checkSizes(options);
    return native().initialSaeWeights(defined(options));
  });
}

/** Best single-precision matrix product rate of the trainers' kernels, in operations per second: for benchmarks. */
export function productRate(threads: number, seconds = 0.2): Promise<number> {
  return run({}, () => native().productRate({ threads, seconds }));
}

/** Which instruction set the trainers use here: "avx512", "avx2" or "portable". */
export function trainKernels(): string {
  return native().trainKernels();
}

async function run<T>(
  { signal, onProgress }: TrainingOptions,
  start: (extra: object) => Promise<T>,
): Promise<T> {
  return cancellable(signal, async (cancel) => start({ cancel, ...defined({ onProgress }) }));
}

function trainingSet({ features, train, seed, threads }: TrainingSet) {
  if (!(train instanceof Uint8Array))
    throw invalid("train must be a Uint8Array with 1 for each training example.");
  checkBits("train", train, train.length);
  if (!train.includes(1) || !train.includes(0)) {
    throw invalid(
      `Training and held-out examples are both needed, but all ${train.length} are in one split.`,
    );
  }
  const { data, shape } = rowsOf(features, train.length);
  if (shape[0] !== train.length) {
    throw invalid(`train has ${train.length} entries for ${shape[0]} rows of features.`);
  }
  checkInteger("threads", threads, 1);
  checkInteger("seed", seed, 0);
  return { features: data, hidden: shape[1], train };
}

/** The numbers of `features` in row-major order, and their shape. */
function rowsOf(features: Features, rows: number): { data: Float32Array; shape: [number, number] } {
  if (features instanceof Float32Array) {
    if (features.length === 0 || features.length % rows !== 0) {
      throw invalid(`${features.length} activations cannot be ${rows} rows of equal length.`);
    }
    return { data: features, shape: [rows, features.length / rows] };
  }
  if (!(features?.data instanceof Float32Array) || features.shape.length !== 2) {
    throw invalid("features must be a Float32Array, or an ndarray of float32 with two dimensions.");
  }
  const [count, hidden] = features.shape as [number, number];
  if (count < 1 || hidden < 1)
    throw invalid(`features must not be empty, but their shape is ${count} x ${hidden}.`);
  const [rowStride, stride] = features.stride as [number, number];
  const { data, offset } = features;
  if (stride === 1 && rowStride === hidden) {
    return { data: data.subarray(offset, offset + count * hidden), shape: [count, hidden] };
  }
  const copy = new Float32Array(count * hidden);
  for (let row = 0; row < count; row++) {
    for (let k = 0; k < hidden; k++)
      copy[row * hidden + k] = data[offset + row * rowStride + k * stride] as number;
  }
  return { data: copy, shape: [count, hidden] };
}

function checkSizes(options: { nFeatures?: number; steps?: number }): void {
  checkInteger("nFeatures", options.nFeatures, 1);
  checkInteger("steps", options.steps, 0);
}

function checkWeights(weights: SaeWeights, nFeatures: number, hidden: number): void {
  const sizes: Array<[keyof SaeWeights, number]> = [
    ["encoderWeight", nFeatures * hidden],
    ["encoderBias", nFeatures],
    ["decoderWeight", nFeatures * hidden],
    ["decoderBias", hidden],
  ];
  for (const [name, size] of sizes) {
    const array = weights?.[name];
    if (!(array instanceof Float32Array) || array.length !== size) {
      throw invalid(
        `init.${name} must be a Float32Array of ${size} numbers for ${nFeatures} features and ${hidden} dimensions.`,
      );
    }
  }
}

function checkBits(name: string, bits: Uint8Array, length: number): void {
  if (!(bits instanceof Uint8Array)) throw invalid(`${name} must be a Uint8Array of 0 and 1.`);
  if (bits.length !== length) throw invalid(`${name} has ${bits.length} entries for ${length} examples.`);
  const row = bits.findIndex((bit) => bit > 1);
  if (row >= 0) throw invalid(`${name} must be 0 or 1, but entry ${row} is ${bits[row]}.`);
}

function checkPositive(name: string, value: number | undefined): void {
  if (value !== undefined && !(value > 0 && Number.isFinite(value))) {
    throw invalid(`${name} must be a positive number, got ${value}.`);
  }
}

/** The options that have a value; the addon has defaults for the others. */
function defined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
