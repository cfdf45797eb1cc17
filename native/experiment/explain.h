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

/// What stands in the marked place of a prompt: a row, else a typed token, else nothing.
struct Filling {
  std::vector<float> row;  // [n_embd]
  llama_token token = -1;

  bool empty() const { return row.empty() && token < 0; }
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

/// Whether, and how, rows can stand where tokens' embeddings do. Found out once; forgets the context's
/// sequence then.
EmbeddingInput embedding_input(Passes& passes, const CancelToken& cancel);

/// What the model says to a prompt in which a row stands in a token's embedding's place: the tokens before
/// it, the row and the tokens after it, each a pass of its own, then its own tokens one by one. The context
/// needs the prompt's tokens, one more, and `max_tokens`. Forgets the context's sequence. `progress` counts
/// tokens of answers. Throws kUnsupportedArchitecture where embedding_input() says no.
std::vector<Explanation> explain(Passes& passes, const ExplainRequest& request, const CancelToken& cancel,
                                 const CountProgress& progress);

}  // namespace tapline
