#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "engine/generation_loop.h"
#include "experiment/forward.h"

namespace tapline {

struct ServedForwardRequest {
  ForwardRequest forward;
  std::vector<std::string> texts;  // by sequence: tokenized if it has no tokens
  bool add_special = true;
};

struct ServedForwardResult {
  ForwardResult forward;
  std::vector<std::vector<llama_token>> tokens;  // by sequence
  double waited_ms = 0;                          // for the running iteration to end
  double forward_ms = 0;                         // all batches, without the generation in between
};

/// Forward passes on the serving weights, in a separate context, on the generation thread: one batch between
/// two iterations, so that generation waits for one batch at most.
class ResidentForward {
 public:
  /// @param n_ctx the longest sequence, in tokens
  /// @param edits see ContextOptions
  ResidentForward(std::shared_ptr<Model> model, uint32_t n_ctx, int threads, std::string edits);

  /// Blocks until it is done. `cancel` also ends a running batch. Contexts are created when they are first
  /// needed and grow with the longest sequence. Throws what Forward does, kOutOfMemory, kClosed. One call at
  /// a time.
  ServedForwardResult run(GenerationLoop& loop, ServedForwardRequest request, const CancelToken& cancel);

 private:
  Passes& context(size_t tokens, bool attention);

  std::shared_ptr<Model> model_;
  const uint32_t n_ctx_;
  const int threads_;
  const std::string edits_;
  std::unique_ptr<Passes> context_;
  std::unique_ptr<Passes> attention_context_;  // without flash attention
};

}  // namespace tapline
