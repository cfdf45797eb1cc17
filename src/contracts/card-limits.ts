/** Limits of `tapline card`. */
export const cardLimits = {
  strengths: 8,
  random: 5,
  texts: 500,
  prompts: 500,
  answer_tokens: 64,
  resamples: 1000,
} as const;
