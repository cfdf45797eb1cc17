import type { Metadata } from "./gguf-writer.js";

/** Metadata of a byte-level BPE tokenizer: the 256 characters for bytes, then made-up words up to `size` tokens. */
export function byteTokenizer(size: number): Metadata {
  const printable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  const bytes = Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(printable(byte) ? byte : next++),
  );
  const tokens = [...bytes, ...Array.from({ length: size - 256 }, (_, index) => `Ġw${index}`)];
  return {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "qwen2",
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": new Int32Array(tokens.length).fill(1),
    "tokenizer.ggml.merges": ["Ġ a"],
    "tokenizer.ggml.eos_token_id": tokens.length - 1,
    "tokenizer.ggml.add_bos_token": false,
  };
}
