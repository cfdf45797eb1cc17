#pragma once

#include "ggml-backend.h"
#include "llama.h"

namespace tapline {

/// Lets a callback hear the nodes of one decode of a context that was made without one. A callback that is
/// always set would cost a synchronisation a split although nobody watches.
class EvalCallbackScope {
 public:
  EvalCallbackScope(llama_context* ctx, ggml_backend_sched_eval_callback callback, void* user_data);
  ~EvalCallbackScope();
  EvalCallbackScope(const EvalCallbackScope&) = delete;
  EvalCallbackScope& operator=(const EvalCallbackScope&) = delete;

 private:
  llama_context* ctx_;
};

}  // namespace tapline
