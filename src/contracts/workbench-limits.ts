/** Limits of the workbench page's requests to its service. */
export const workbenchLimits = {
  body_bytes: 1_000_000,
  text_characters: 32_768,
  /** Saved conversations; the oldest are deleted first. */
  conversations: 500,
  turns: 200,
  /** Of a text that replaces a token. */
  edit_characters: 4096,
  /** Features reported per token. */
  features: 8,
  max_tokens: 4096,
  /** Of a question that is asked with two settings, and of each of its answers. */
  reading_characters: 4000,
  reading_tokens: 256,
  /** The fewest texts that a dictionary is trained on. */
  training_texts: 16,
  /** Saved labels of features; the oldest are deleted first. */
  labels: 5000,
  /** Saved readings; the oldest are deleted first. */
  readings: 200,
  /** Events that a reconnecting page can catch up on. */
  events: 4096,
  /** Signed-in browsers; the oldest is signed out first. */
  sessions: 16,
  /** How long a link is valid, in milliseconds. */
  link_ms: 600_000,
  /** Of a job's title and of its note. */
  job_title_characters: 120,
  job_note_characters: 4000,
  /** Jobs per drafted study. */
  study_jobs: 32,
  /** Concurrent downloads. */
  downloads: 3,
  /** Listed downloads, including finished ones. */
  downloads_told: 20,
} as const;
