/** Limits of a request's edits and readings, and of the library of vectors and probes. */
export const liveLimits = {
  interventions: 16,
  layers: 8,
  ranges: 64,
  probes: 8,
  projections: 8,
  lens: 10,
  /** Saved lenses that one request reads. */
  lenses: 2,
  dictionaries: 4,
  /** Per dictionary and token. */
  features: 50,
  /** Of a strength, whatever its unit. */
  strength: 1e6,
  /** Consecutive tokens that a condition may require. */
  condition_tokens: 1024,
  /** Of a stored vector or probe. */
  name_characters: 64,
  /** Of an uploaded file. */
  file_bytes: 64 * 1024 ** 2,
  stored: 1000,
  /** Of the activations that one completion saves, and of all captures in memory. */
  capture_bytes: 64 * 1024 ** 2,
  captures_bytes: 256 * 1024 ** 2,
  /** Per side of a direction. */
  texts: 512,
  /** Minimum per side of a probe: every fifth is held out. */
  probe_texts: 5,
  text_characters: 32_768,
  /** Tokens per text. */
  text_tokens: 256,
} as const;

/** Names of saved vectors, probes, dictionaries and lenses. */
export const namePattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$";

/** Direction files of other projects, which do not record what their rows are. */
export const vectorFormats = ["persona", "assistant-axis", "capping", "refusal"] as const;
export type VectorFormat = (typeof vectorFormats)[number];
