/** llama-server's own paths that this server and its router have, beside OpenAI's under /v1. */
export const llamaServerPaths = {
  /** POST: each with a body. */
  asked: ["/completion", "/completions", "/infill", "/tokenize", "/detokenize", "/apply-template"],
  /** GET: what a server tells of itself. */
  told: ["/props", "/slots", "/lora-adapters"],
} as const;
