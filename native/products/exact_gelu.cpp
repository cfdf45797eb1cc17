#include "exact_gelu.h"

#include <algorithm>

namespace tapline::products {

namespace {

/// Both are x * sigmoid(z). The limit for exp(-z) in float32: beyond it, the sigmoid is 0 or 1.
constexpr float kMost = 87.0F;

template <class Argument>
void gated_sigmoid(int n, float* y, const float* x, const float* gate, Argument argument) {
  constexpr int kChunk = 256;
  alignas(64) float powers[kChunk];
  for (int from = 0; from < n; from += kChunk) {
    const int count = std::min(kChunk, n - from);
    for (int i = 0; i < count; ++i) powers[i] = std::clamp(-argument(x[from + i]), -kMost, kMost);
    ggml_vec_soft_max_f32(count, powers, powers, 0.0F);  // ggml's exp; it also returns their sum
    if (gate == nullptr) {
      for (int i = 0; i < count; ++i) y[from + i] = x[from + i] / (1.0F + powers[i]);
    } else {
      for (int i = 0; i < count; ++i) y[from + i] = x[from + i] / (1.0F + powers[i]) * gate[from + i];
    }
  }
}

}  // namespace

void gelu(int n, float* y, const float* x, const float* gate) {
  // 1 + tanh(z) is 2 * sigmoid(2z), without the difference of two numbers near one.
  gated_sigmoid(n, y, x, gate,
                [](float v) { return 2.0F * SQRT_2_OVER_PI * v * (1.0F + GELU_COEF_A * v * v); });
}

void gelu_quick(int n, float* y, const float* x, const float* gate) {
  gated_sigmoid(n, y, x, gate, [](float v) { return -GELU_QUICK_COEF * v; });
}

}  // namespace tapline::products
