/** Bounds of what a tool of `tapline mcp` returns at once, so that one call cannot fill an agent's context. */
export const mcpLimits = {
  /** Characters of JSON in one result; the fenced copy has as many again. */
  page_characters: 40_000,
  /** Characters of one text that a piece shows. */
  piece_characters: 12_000,
  /** Seconds that `lab_job` waits for a job to end, at most. */
  wait_seconds: 50,
  /** Tokens of an answer that `serving_generate` lets a model write, at most and unless told otherwise. */
  answer_tokens: 4096,
  usual_answer_tokens: 256,
  /** Milliseconds that the start waits for the service's word on what the token may do. */
  scope_check_ms: 10_000,
} as const;
