/** Limits of `tapline check`. */
export const budgetLimits = {
  prompts: 64,
  prompt_tokens: 512,
  items: 64,
  accepted: 8,
  /** Random projections per block output. */
  sketch: 8,
  /** Clean repeats from which the typical deviation of each reading is taken. */
  scale_repeats: 5,
  /** An accepted form may deviate this many times as far. */
  margin: 1.5,
  /** Deviations of single-precision rounding. */
  rounding: 2e-5,
  /** Smallest thresholds, so that rounding does not raise an alarm; for blocks and vectors relative to the activation's norm. */
  floor: { block: 1e-3, vector: 1e-3, probe: 2e-3, feature: 2e-3, next: 5e-3 },
} as const;
