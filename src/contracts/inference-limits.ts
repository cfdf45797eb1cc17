/** Limits of the inference server's own endpoints; those of captures and executions stand in limits.ts. */
export const inferenceLimits = {
  body_bytes: 8_388_608,
  json_depth: 64,
  messages: 4096,
  tools: 128,
  /** Prompts of one request; they wait for slots in turn. */
  prompts: 2048,
  /** Answers to one request: its prompts times n. */
  answers: 16_384,
  /** Files of further context for /infill. */
  infill_files: 64,
  /** Texts of one request for embeddings, as OpenAI has it. */
  embedding_inputs: 2048,
  prompt_tokens: 1_048_576,
  stop_strings: 64,
  stop_characters: 1024,
  top_logprobs: 20,
  /** Log-probabilities that one answer tells of its prompts. */
  prompt_logprobs: 1_048_576,
  /** Tokens that a penalty looks back at: each slot reserves memory for them. */
  penalty_window: 65_536,
  logit_biases: 4096,
  grammar_characters: 65_536,
  /** Parentheses within parentheses: llama.cpp's grammar parser recurses into them. */
  grammar_depth: 64,
  /** Regular expressions in JSON schemas are parsed recursively as well. */
  pattern_characters: 1024,
  slots: 256,
  /** Requests that wait for a slot before new ones are told to come back. */
  waiting: 256,
} as const;
