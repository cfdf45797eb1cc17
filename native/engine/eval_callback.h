#pragma once

#include "ggml-backend.h"
#include "llama-context.h"

namespace tapline {

/// Sets the eval callback for one decode of a context that was created without one. A permanent callback
/// would cost a synchronisation per split even when it is not needed.
class EvalCallbackScope {
 public:
  EvalCallbackScope(llama_context* ctx, ggml_backend_sched_eval_callback callback, void* user_data)
      : ctx_(ctx) {
    set(callback, user_data);
  }
  ~EvalCallbackScope() { set(nullptr, nullptr); }
  EvalCallbackScope(const EvalCallbackScope&) = delete;
  EvalCallbackScope& operator=(const EvalCallbackScope&) = delete;

 private:
  void set(ggml_backend_sched_eval_callback callback, void* user_data) {
    // llama.cpp passes its parameters to the scheduler when it builds a graph but not when it reuses one, so
    // both are set. The parameters of a context are not constant, only its getter says so.
    auto& params = const_cast<llama_cparams&>(ctx_->get_cparams());
    params.cb_eval = callback;
    params.cb_eval_user_data = user_data;
    ggml_backend_sched_set_eval_callback(ctx_->get_sched(), callback, user_data);
  }

  llama_context* ctx_;
};

}  // namespace tapline
