/** Limits of what the workbench's page may ask of its service. */
export const workbenchLimits = {
  body_bytes: 1_000_000,
  text_characters: 32_768,
  /** Kept conversations; the oldest make room. */
  conversations: 500,
  turns: 200,
  /** Of a text that is put in a token's place. */
  edit_characters: 4096,
  /** Features that are told of a token. */
  features: 8,
  max_tokens: 4096,
  /** Events that a page which lost its stream can catch up on. */
  events: 4096,
  /** Browsers that are signed in at the same time; the oldest makes room. */
  sessions: 16,
  /** How long a link can be opened, in milliseconds. */
  link_ms: 600_000,
  /** Jobs of which one study is drafted. */
  study_jobs: 32,
  /** Downloads that run at the same time. */
  downloads: 3,
  /** Downloads that are told of, those that ended among them. */
  downloads_told: 20,
} as const;
