/** Limits of `POST /lab/forward`. */
export const forwardLimits = {
  sequences: 64,
  sequence_tokens: 131_072,
  text_characters: 1_048_576,
  captures: 1024,
  positions: 4096,
  edits: 1024,
  ranges: 64,
  vector_values: 65_536,
  /** Of one result. */
  bytes: 2_000_000_000,
  /** Of all files that clients have not deleted yet. */
  file_bytes: 4_000_000_000,
  /** After which the server deletes a file. */
  file_seconds: 30,
  /** Calls that may wait; further ones are answered 429. */
  waiting: 64,
  body_bytes: 33_554_432,
} as const;
