/** llama-server's paths, and vLLM's for tokenizers, that this server and its router support, in addition to /v1. */
export const llamaServerPaths = {
  /** POST paths, each with a body. */
  asked: ["/completion", "/completions", "/infill", "/tokenize", "/detokenize", "/apply-template"],
  /** GET paths that report on the server. */
  told: ["/props", "/slots", "/lora-adapters", "/tokenizer_info"],
} as const;
