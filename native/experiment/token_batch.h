#pragma once

#include <cstddef>
#include <cstdint>

#include "llama.h"

namespace tapline {

/// A llama_batch in which every token belongs to one sequence.
struct TokenBatch {
  explicit TokenBatch(size_t capacity) : raw(llama_batch_init(static_cast<int32_t>(capacity), 0, 1)) {}
  ~TokenBatch() { llama_batch_free(raw); }
  TokenBatch(const TokenBatch&) = delete;
  TokenBatch& operator=(const TokenBatch&) = delete;

  void add(llama_token token, uint32_t position, llama_seq_id sequence, bool output) {
    const int at = raw.n_tokens++;
    raw.token[at] = token;
    raw.pos[at] = static_cast<llama_pos>(position);
    raw.n_seq_id[at] = 1;
    raw.seq_id[at][0] = sequence;
    raw.logits[at] = output ? 1 : 0;
  }

  size_t size() const { return static_cast<size_t>(raw.n_tokens); }
  void clear() { raw.n_tokens = 0; }

  llama_batch raw;
};

}  // namespace tapline
