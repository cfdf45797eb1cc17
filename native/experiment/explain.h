#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "llama.h"

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

/// What stands in the marked place of a prompt: a row, else a typed token, else nothing.
struct Filling {
  std::vector<float> row;  // [n_embd]
  llama_token token = -1;
};

/// A prompt with one marked place, and what is put there in turn. Each filling is answered as if it were the
/// only one.
struct ExplainRequest {
  std::vector<llama_token> before;
  std::vector<llama_token> after;
  std::vector<Filling> fillings;
  int max_tokens = 1;  // of each answer
  int samples = 1;     // answers to each filling
  float temperature = 0;
  /// [samples, max_tokens], uniform in [0, 1): where each token is drawn. Empty: the most probable token.
  std::vector<double> draws;
  bool keep_logits = false;  // those of each answer's first token
};

struct Answer {
  std::vector<llama_token> tokens;  // without the end-of-generation token
  bool ended = false;               // by the model itself, not for want of tokens
};

struct Explanation {
  std::vector<float> logits;  // [n_vocab]; empty unless kept
  std::vector<Answer> answers;
};

}  // namespace tapline
