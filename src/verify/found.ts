/** The result of one check. */
export interface Found {
  check: string;
  ok: boolean;
  /** The largest relative distance from llama.cpp's values, and the bound on it. */
  distance: number;
  allowed: number;
  /** The problems; empty if ok. */
  problem: string;
}

/** Relative distances that pass. */
export const allowed = {
  /** float32 sums in a different order: measured up to 7e-7. */
  processor: 2e-5,
  /** GPUs may multiply float32 with ten binary digits (TF32), and keep K and V in 16 bits. */
  device: 1e-2,
  /** Products with quantised weights round the activations to eight bits. */
  forms: 0.03,
  /** Logit differences, in parts of the largest one. */
  live: 1e-3,
  /** The least change of the logits that counts as the effect of an edit. */
  effect: 1e-2,
} as const;
