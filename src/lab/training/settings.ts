import type { TargetPoint } from "../../contracts/names.js";
import type { DictionaryArchitecture, DictionaryTraining } from "../../native/index.js";

/** User settings of a dictionary's training; the rest is derived. */
export interface DictionarySettings {
  architecture: DictionaryArchitecture;
  features: number;
  steps: number;
  seed: number;
  k?: number | undefined;
  batch?: number | undefined;
  learning_rate?: number | undefined;
  /** Shares of the steps. */
  warmup?: number | undefined;
  decay?: number | undefined;
  sparsity?: number | undefined;
  /** A transcoder: the point that it predicts. */
  target?: TargetPoint | undefined;
  /** Its linear skip term. */
  skip?: boolean | undefined;
}

export type FilledSettings = Omit<DictionaryTraining, "pieces" | "state" | "threads">;

const defaultK = 32;
const defaultBatch = 2048;
/** Rows without firing after which a feature is dead, as in Gao et al., but at most a tenth of the training. */
const deadRows = 10_000_000;
/**
 * Sparsity weight of JumpReLU, as a share of the mean square: one active feature must explain a thousandth of the
 * variance.
 */
const jumpSparsity = 1e-3;

/**
 * Derives all settings of a training from the user's.
 *
 * Learning rate: 2e-4 sqrt(16384 / features), the scaling law of Gao et al. 2024 (section 3) for about ten thousand
 * steps or more. With fewer steps it grows by the square root of the ratio, up to the rate of the small autoencoder,
 * 0.06 / sqrt(hidden); both are our additions. Auxiliary loss as in their A.2, with half as many features as
 * dimensions and a weight of 1/32. Top-k is initialized as in SAELens 6: there, rows of both matrices have norm 0.1
 * (Conerly et al., Anthropic, April 2024) and activations are scaled by the decoder's norms, which is equivalent to
 * encoder rows of norm 0.01 with decoder rows of norm 1. On sums of 1024 directions (2048 features, k 16, 400 steps
 * at a rate of 0.004) this explains 78.1 to 78.4 % of the held-out variance; norm 0.1 explains 76.7 to 77.4 %, and
 * norm 1, despite smaller errors in the first steps, 73.5 %. Rows are centred, so the decoder's bias starts at their
 * mean. Adam's epsilon is that of Gao et al. (A.3). ReLU: weight of the L1 term and initial norm of decoder rows as
 * in "Training Sparse Autoencoders" (native/dictionaries/sparse_autoencoder.h). JumpReLU: bandwidth and first
 * threshold of Rajamanoharan et al. 2024, 0.001 for rows of norm 1, scaled to our rows of norm sqrt(hidden).
 * @param trainRows number of training rows, an upper bound for the batch size
 */
export function filledSettings(said: DictionarySettings, hidden: number, trainRows: number): FilledSettings {
  const { architecture, features, steps, seed } = said;
  const batch = Math.min(said.batch ?? defaultBatch, trainRows);
  const keepsK = architecture === "topk" || architecture === "batchtopk";
  const root = Math.sqrt(hidden);
  const sparsity = { relu: 0.11 * root, jumprelu: jumpSparsity, topk: 0, batchtopk: 0 }[architecture];
  const share = (of: number) => Math.round(of * steps);
  return {
    ...{ architecture, hidden, features, steps, batch, seed },
    ...(said.target && { transcodes: true }),
    ...(said.skip === true && { skip: true }),
    k: keepsK ? (said.k ?? Math.min(defaultK, Math.ceil(features / 4))) : 0,
    bandwidth: architecture === "jumprelu" ? 0.001 * root : 0,
    learningRate: said.learning_rate ?? learningRate(features, hidden, steps),
    warmup: share(said.warmup ?? 0.05),
    decay: share(said.decay ?? 0.2),
    sparsity: said.sparsity ?? sparsity,
    sparsityWarmup: share(0.05),
    initialNorm: keepsK ? 0.01 : 0.1,
    epsilon: 6.25e-10,
    initialThreshold: architecture === "jumprelu" ? 0.001 * root : 0,
    deadAfter: Math.max(1, Math.min(Math.ceil(deadRows / batch), Math.ceil(steps / 10))),
    auxK: Math.max(1, Math.min(Math.floor(hidden / 2), features)),
    auxWeight: 1 / 32,
    heldOut: 16_384,
  };
}

function learningRate(features: number, hidden: number, steps: number): number {
  const long = 2e-4 * Math.sqrt(16_384 / features);
  return Math.min(0.06 / Math.sqrt(hidden), long * Math.sqrt(Math.max(1, 10_000 / steps)));
}

/**
 * Bytes per feature of each row of a batch: initially half of them fire, each with 12 bytes in a list that grows by
 * doubling and 16 bytes for its gradient; batch top-k also lists the values.
 */
const firingBytes = { relu: 20, jumprelu: 20, batchtopk: 16, topk: 0 };

/**
 * Peak memory of a training in bytes: two matrices with their moments, plus a copy while they are saved; rows and
 * errors; firing features, which peak at the start; and each thread's buffers.
 * @param resumed whether it resumes from a checkpoint, which is in memory twice while being read
 */
export function trainingBytes(
  { architecture, features, hidden, batch, k, transcodes, skip }: FilledSettings,
  { threads, resumed }: { threads: number; resumed: boolean },
): number {
  const matrices = 24 * features * hidden + (skip ? 12 * hidden * hidden : 0);
  const rows = (transcodes ? 28 : 16) * batch * hidden;
  const firing = batch * (firingBytes[architecture] * features + 28 * k);
  return (resumed ? 3 : 2) * matrices + rows + firing + 512 * threads * features;
}
