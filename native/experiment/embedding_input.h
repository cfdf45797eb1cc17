#pragma once

#include <string>
#include <vector>

#include "experiment/passes.h"

namespace tapline {

/// Whether a row can stand where a token's embedding does, found out by doing it: a token's own embedding,
/// put in as a row, must give the logits of the typed token to the bit.
struct EmbeddingInput {
  bool supported = false;
  std::string reason;  // one sentence, when not supported
  /// What the graph multiplies the embedding of a typed token by, and a row that is put in not: 1 for most,
  /// the root of the hidden size for gemma3.
  float token_scale = 1;
};

/// Found out once; forgets the context's sequence then.
EmbeddingInput embedding_input(Passes& passes, const CancelToken& cancel);

/// What stands in the marked place of a prompt: a row, else a typed token, else nothing.
struct Filling {
  std::vector<float> row;  // [n_embd]
  llama_token token = -1;

  bool empty() const { return row.empty() && token < 0; }
};

/// Continues sequence 0 after its first `position` tokens; the next one's logits, where wanted.
const float* compute_tokens(Passes& passes, const std::vector<llama_token>& tokens, size_t position,
                            bool answer, const CancelToken& cancel);
const float* compute_filling(Passes& passes, const Filling& filling, size_t position, bool answer,
                             const CancelToken& cancel);

}  // namespace tapline
