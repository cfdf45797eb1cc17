/** Bounds that clients of the studies service keep by themselves, whatever the service sends. */
export const researchLimits = {
  /** Bytes of one answer. The largest legal ones are discussions: 50 comments of 10,000 characters. */
  answer_bytes: 4_194_304,
  /** Milliseconds for one call, from its start to the last byte, retries included. */
  deadline_ms: 30_000,
  /** Attempts of a read whose connection broke or that was answered 502, 503 or 504; writes have one. */
  read_attempts: 3,
  /** Longest wait between two attempts, in milliseconds; a service that asks for more is not asked again. */
  retry_wait_ms: 2000,
  /** Characters of a service's own error sentence that are repeated. */
  error_characters: 500,
} as const;

/** Environment variables that name the service and the credential, the same in Python, TypeScript and MCP. */
export const researchEnvironment = {
  token: "AGENT_RESEARCH_TOKEN",
  url: "AGENT_RESEARCH_URL",
  /** PEM file of the authorities to trust in place of the system's. */
  caFile: "AGENT_RESEARCH_CA_FILE",
  /** Exactly "1" lets MCP offer the saving of drafts. */
  allowDrafts: "AGENT_RESEARCH_ALLOW_DRAFTS",
} as const;
