import type { DictionaryArchitecture, DictionaryTraining } from "../../native/index.js";

/** What a person says of a dictionary's training; the rest follows from it. */
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
}

export type FilledSettings = Omit<DictionaryTraining, "pieces" | "state" | "threads">;

const defaultK = 32;
const defaultBatch = 2048;
/** Rows after which a feature that has not fired is dead: that of Gao et al., but not longer than a tenth of a training. */
const deadRows = 10_000_000;
/** Of the loss in the mean square. JumpReLU: what one active feature must be worth, a thousandth of the variance. */
const jumpSparsity = 1e-3;

/**
 * Everything that decides a training, from what was said of it.
 *
 * Learning rate: 2e-4 sqrt(16384 / features), the law of Gao et al. 2024 (section 3), which is for some ten thousand steps and
 * more; with fewer it is larger by the root of how many fewer, up to the rate of the small autoencoder, 0.06 / sqrt(hidden),
 * both of which are ours. Auxiliary loss as theirs (A.2), with half as many features as dimensions and a weight of 1/32.
 * Top-k begins as SAELens 6 does: there rows of both matrices have a length of 0.1 (Conerly et al., Anthropic, April 2024) and
 * activations count by the decoder's lengths, which with decoder rows of length 1 are encoder rows of length 0.01. Of sums of
 * 1024 directions (2048 features, k 16, 400 steps at a rate of 0.004) it explains 78.1 to 78.4 % of the held-out variance, with 0.1
 * 76.7 to 77.4, with 1, where the first steps' errors are smaller, 73.5. Rows are centred, so that the decoder's bias begins at their
 * mean. Adam's epsilon is that of Gao et al. (A.3).
 * ReLU: weight of the L1 term and length of the first decoder rows as in "Training Sparse Autoencoders"
 * (native/dictionaries/sparse_autoencoder.h). JumpReLU: bandwidth and first threshold of Rajamanoharan et al. 2024, 0.001 for rows
 * of length 1, scaled to ours of length sqrt(hidden).
 * @param trainRows rows to train on: a batch has no more
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
 * Bytes for each feature of each row of a batch: half of them fire at first, each with 12 bytes in a list that grows by
 * doubling, and 16 for its gradient; of a batch's largest only their values are listed beside.
 */
const firingBytes = { relu: 20, jumprelu: 20, batchtopk: 16, topk: 0 };

/**
 * Bytes that a training takes at most: two matrices with their moments, and a copy of them while they are kept or
 * written; rows and errors; what fires, at its most at the beginning; what each thread works in.
 * @param resumed whether it goes on from a checkpoint, which is in memory twice while it is read
 */
export function trainingBytes(
  { architecture, features, hidden, batch, k }: FilledSettings,
  { threads, resumed }: { threads: number; resumed: boolean },
): number {
  const matrices = 24 * features * hidden;
  const rows = 16 * batch * hidden;
  const firing = batch * (firingBytes[architecture] * features + 28 * k);
  return (resumed ? 3 : 2) * matrices + rows + firing + 512 * threads * features;
}
