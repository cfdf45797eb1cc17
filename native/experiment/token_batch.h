#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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

/// A llama_batch of one row that stands where a token's embedding does.
struct RowBatch {
  /// @param width n_embd_inp: what the row lacks of it is zero, as it is for a typed token
  RowBatch(std::vector<float> row, size_t width, uint32_t position, llama_seq_id sequence, bool output)
      : embedding(std::move(row)), id(sequence), wanted(output ? 1 : 0) {
    embedding.resize(width, 0);
    // Where positions have several dimensions, llama.cpp gives a typed token these, and asks for a row's.
    const auto at = static_cast<llama_pos>(position);
    positions = {at, at, at, 0};
    raw.n_tokens = 1;
    raw.embd = embedding.data();
    raw.pos = positions.data();
    raw.n_seq_id = &sequences;
    raw.seq_id = &ids;
    raw.logits = &wanted;
  }
  RowBatch(const RowBatch&) = delete;
  RowBatch& operator=(const RowBatch&) = delete;

  std::vector<float> embedding;
  std::array<llama_pos, 4> positions{};
  llama_seq_id id;
  llama_seq_id* ids = &id;
  int32_t sequences = 1;
  int8_t wanted;
  llama_batch raw{};
};

}  // namespace tapline
