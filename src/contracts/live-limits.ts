/** Limits of what a request may change and watch, and of the library that it takes vectors and probes from. */
export const liveLimits = {
  interventions: 16,
  layers: 8,
  ranges: 64,
  probes: 8,
  projections: 8,
  lens: 10,
  /** Of a strength, whatever its unit. */
  strength: 1e6,
  /** Tokens in a row that a condition may ask for. */
  condition_tokens: 1024,
  /** Of a stored vector or probe. */
  name_characters: 64,
  /** Of an uploaded file. */
  file_bytes: 64 * 1024 ** 2,
  stored: 1000,
  /** Of the rows that one completion keeps, and of all captures in memory. */
  capture_bytes: 64 * 1024 ** 2,
  captures_bytes: 256 * 1024 ** 2,
  /** On each side of a direction. */
  texts: 512,
  /** Least on each side of a probe: every fifth is held out. */
  probe_texts: 5,
  text_characters: 32_768,
  /** Tokens of one of these texts. */
  text_tokens: 256,
} as const;

/** What a stored thing can be called. */
export const namePattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$";

/** Files of other projects that hold directions: what their rows are, they do not say themselves. */
export const vectorFormats = ["persona", "assistant-axis", "capping", "refusal"] as const;
export type VectorFormat = (typeof vectorFormats)[number];
