/** Limits of the inference server's own endpoints; those of captures and executions are in limits.ts. */
export const inferenceLimits = {
  body_bytes: 8_388_608,
  json_depth: 64,
  messages: 4096,
  tools: 128,
  /** Prompts per request; they queue for slots. */
  prompts: 2048,
  /** Answers per request: prompts times n. */
  answers: 16_384,
  /** Extra context files for /infill. */
  infill_files: 64,
  /** Texts per embeddings request, the same as OpenAI's limit. */
  embedding_inputs: 2048,
  prompt_tokens: 1_048_576,
  stop_strings: 64,
  stop_characters: 1024,
  top_logprobs: 20,
  /** Log-probabilities of prompt tokens in one answer. */
  prompt_logprobs: 1_048_576,
  /** Tokens a penalty looks back at; each slot reserves memory for them. */
  penalty_window: 65_536,
  logit_biases: 4096,
  grammar_characters: 65_536,
  /** Nested parentheses: llama.cpp's grammar parser recurses into them. */
  grammar_depth: 64,
  /** Regular expressions in JSON schemas are parsed recursively as well. */
  pattern_characters: 1024,
  slots: 256,
  /** Requests that may wait for a slot; further ones are answered 503. */
  waiting: 256,
} as const;
