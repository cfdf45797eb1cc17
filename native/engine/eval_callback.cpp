#include "engine/eval_callback.h"

#include "llama-context.h"

namespace tapline {

namespace {

void set(llama_context* ctx, ggml_backend_sched_eval_callback callback, void* user_data) {
  // llama.cpp hands its parameters to the scheduler whenever it builds a graph, and not when it uses one
  // again: so both are told. The parameters of a context are not constant, only its getter says so.
  auto& params = const_cast<llama_cparams&>(ctx->get_cparams());
  params.cb_eval = callback;
  params.cb_eval_user_data = user_data;
  ggml_backend_sched_set_eval_callback(ctx->get_sched(), callback, user_data);
}

}  // namespace

EvalCallbackScope::EvalCallbackScope(llama_context* ctx, ggml_backend_sched_eval_callback callback,
                                     void* user_data)
    : ctx_(ctx) {
  set(ctx_, callback, user_data);
}

EvalCallbackScope::~EvalCallbackScope() {
  set(ctx_, nullptr, nullptr);
}

}  // namespace tapline
