#pragma once

#include <string>
#include <vector>

#include "experiment/passes.h"

namespace tapline {

/// Whether a row can replace a token's embedding, tested on the model: the embedding of a token as a row must
/// give the same logits as the token, to the bit.
struct EmbeddingInput {
  bool supported = false;
  std::string reason;  // one sentence, when not supported
  /// The factor by which the graph multiplies embeddings of tokens but not rows: 1 for most models, the root
  /// of the hidden size for gemma3.
  float token_scale = 1;
};

/// The content of the marked place of a prompt: a row, a token, or nothing.
struct Filling {
  std::vector<float> row;  // [n_embd]
  llama_token token = -1;

  bool empty() const { return row.empty() && token < 0; }
};

/// A prompt with one marked place and its fillings, which are answered independently.
struct ExplainRequest {
  std::vector<llama_token> before;
  std::vector<llama_token> after;
  std::vector<Filling> fillings;
  int max_tokens = 1;  // of each answer
  int samples = 1;     // answers to each filling
  float temperature = 0;
  /// [samples, max_tokens], uniform in [0, 1), for sampling each token. Empty: greedy.
  std::vector<double> draws;
  bool keep_logits = false;  // for the first token of each answer
};

struct Answer {
  std::vector<llama_token> tokens;  // without the end-of-generation token
  bool ended = false;               // by the model, not at max_tokens
};

struct Explanation {
  std::vector<float> logits;  // [n_vocab]; empty unless requested
  std::vector<Answer> answers;
};

/// Whether rows can replace embeddings of tokens. Tested once; clears the context's sequence then.
EmbeddingInput embedding_input(Passes& passes, const CancelToken& cancel);

/// Generates answers to a prompt in which a row replaces a token's embedding. The tokens before it, the row
/// and the tokens after it are separate passes. The context needs the prompt's tokens, one more, and
/// `max_tokens`. Clears the context's sequence. `progress` counts generated tokens. Throws
/// kUnsupportedArchitecture if embedding_input() is not supported.
std::vector<Explanation> explain(Passes& passes, const ExplainRequest& request, const CancelToken& cancel,
                                 const CountProgress& progress);

}  // namespace tapline
