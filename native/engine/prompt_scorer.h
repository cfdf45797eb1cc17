#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "engine/generation_loop.h"
#include "experiment/advance.h"

namespace tapline {

struct ScoreRequest {
  std::vector<llama_token> tokens;
  int top = 0;     // number of alternatives per token
  EditPlan edits;  // all tokens count as the prompt
};

struct ScoreResult {
  std::vector<double> log_probabilities;  // [tokens - 1], natural logarithms, of each token after the first
  int top = 0;
  std::vector<int32_t> top_ids;               // [tokens - 1, top], most probable first
  std::vector<double> top_log_probabilities;  // [tokens - 1, top]
  std::vector<int32_t> ids;                   // all tokens in this result, each once
  std::vector<std::string> pieces;            // their bytes
};

/// Computes the probabilities of a prompt's tokens, each given the earlier ones. llama-server does not keep
/// logits of prompts, so they are computed in a separate context on the serving weights, on the generation
/// thread, one batch at a time between two iterations.
class PromptScorer {
 public:
  /// @param n_ctx the longest prompt, in tokens
  /// @param edits see ContextOptions
  PromptScorer(std::shared_ptr<Model> model, uint32_t n_ctx, int threads, std::string edits);

  /// Blocks until it is done. `cancel` takes effect between two batches. The context is created for the first
  /// prompt and grows with the longest. Throws kTokenLimit, kUnsupportedArchitecture, kOutOfMemory, kCompute,
  /// kCancelled, kClosed, and for its edits kInvalidArgument, kLayerOutOfRange. One call at a time.
  ScoreResult run(GenerationLoop& loop, const ScoreRequest& request, const CancelToken& cancel);

 private:
  void prepare(size_t tokens);
  static void add(const AdvanceResult& part, bool edited, ScoreResult& result);
  void add_pieces(const ScoreRequest& request, ScoreResult& result) const;

  std::shared_ptr<Model> model_;
  const uint32_t n_ctx_;
  const int threads_;
  const std::string edits_;
  std::unique_ptr<Passes> context_;
};

}  // namespace tapline
