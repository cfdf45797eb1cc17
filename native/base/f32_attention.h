#pragma once

// llama.cpp's graphs cast keys and values in F32 to F16 for flash attention, because devices need that. The
// processor's (native/products) takes F32. Compilers read this before llama.cpp's llama-graph.cpp, which then
// calls the function below instead of ggml_cast.

namespace tapline {

/// Whether graphs that this thread builds keep F32.
inline thread_local bool keeps_f32_attention = false;

class F32AttentionScope {
 public:
  explicit F32AttentionScope(bool keeps) : before_(keeps_f32_attention) { keeps_f32_attention = keeps; }
  ~F32AttentionScope() { keeps_f32_attention = before_; }
  F32AttentionScope(const F32AttentionScope&) = delete;
  F32AttentionScope& operator=(const F32AttentionScope&) = delete;

 private:
  bool before_;
};

}  // namespace tapline

#ifdef TAPLINE_LLAMA_GRAPH

#include "ggml.h"

namespace tapline {

inline ggml_tensor* cast(ggml_context* context, ggml_tensor* tensor, ggml_type type) {
  const bool keeps = keeps_f32_attention && tensor->type == GGML_TYPE_F32 && type == GGML_TYPE_F16;
  return keeps ? tensor : ggml_cast(context, tensor, type);
}

}  // namespace tapline

#define ggml_cast tapline::cast

#endif
