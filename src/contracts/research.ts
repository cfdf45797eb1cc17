/** Bounds that clients of the studies service enforce regardless of what the service sends. */
export const researchLimits = {
  /** Bytes of one answer. The largest legal ones are discussions: 50 comments of 10,000 characters. */
  answer_bytes: 4_194_304,
  /** Milliseconds for one call, from its start to the last byte, retries included. */
  deadline_ms: 30_000,
  /** Attempts of a read that lost its connection or was answered 502, 503 or 504; writes are never retried. */
  read_attempts: 3,
  /** Longest wait between two attempts, in milliseconds; a service that asks for longer is not retried. */
  retry_wait_ms: 2000,
  /** Characters of a service's error message that are passed on. */
  error_characters: 500,
} as const;

/** Environment variables that name the service and the credential, the same in Python, TypeScript and MCP. */
export const researchEnvironment = {
  token: "AGENT_RESEARCH_TOKEN",
  url: "AGENT_RESEARCH_URL",
  /** PEM file of certificate authorities to trust instead of the system's. */
  caFile: "AGENT_RESEARCH_CA_FILE",
  /** Exactly "1" lets MCP offer a tool to save drafts. */
  allowDrafts: "AGENT_RESEARCH_ALLOW_DRAFTS",
} as const;
