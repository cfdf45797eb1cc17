/** Bounds of one result of a `tapline mcp` tool, so that one call cannot fill an agent's context. */
export const mcpLimits = {
  /** Characters of JSON in one result; the fenced copy has the same number. */
  page_characters: 40_000,
  /** Characters of a text in one piece. */
  piece_characters: 12_000,
  /** Seconds that `lab_job` waits for a job to end, at most. */
  wait_seconds: 50,
  /** Maximum and default answer length of `serving_generate`, in tokens. */
  answer_tokens: 4096,
  usual_answer_tokens: 256,
  /** Milliseconds that the start waits for the service to report the token's scopes. */
  scope_check_ms: 10_000,
} as const;
