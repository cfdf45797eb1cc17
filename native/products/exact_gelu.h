#pragma once

// ggml's GELU on a processor reads a table in half precision, which moves the block outputs of an F32 model
// by 1e-4 to 2e-3 (L2). Compilers read this before ggml's ops.cpp, which then calls these functions instead.

#include "vec.h"

#ifdef __cplusplus

namespace tapline::products {

/// y = gelu(x), or gelu(x) * gate, in float32 throughout; `y` may be `x`.
void gelu(int n, float* y, const float* x, const float* gate);
/// The same with x * sigmoid(1.702 x).
void gelu_quick(int n, float* y, const float* x, const float* gate);

}  // namespace tapline::products

#define ggml_vec_gelu_f32(n, y, x) tapline::products::gelu(n, y, x, nullptr)
#define ggml_vec_gelu_quick_f32(n, y, x) tapline::products::gelu_quick(n, y, x, nullptr)
#define ggml_vec_geglu_f32(n, y, x, g) tapline::products::gelu(n, y, x, g)
#define ggml_vec_geglu_quick_f32(n, y, x, g) tapline::products::gelu_quick(n, y, x, g)

#endif
