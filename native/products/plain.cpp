// Products of F32 weights.

#include "products.h"

#ifdef TAPLINE_PRODUCTS

#include "tile.h"

namespace tapline::products {

namespace {

/// The length of partial sums: longer ones would increase rounding.
constexpr int64_t kRun = 128;

/// kRows rows of weights against one panel.
template <int kRows>
void tile_of(const float* weights, int64_t stride, int64_t depth, const float* panel, __m512* out) {
  __m512 whole[kRows];
  TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
    whole[r] = _mm512_setzero_ps();
  }
  const int64_t beside[4] = {0, stride, 2 * stride, 3 * stride};
  for (int64_t from = 0; from < depth; from += kRun) {
    // The address of every fourth row: there are fewer than sixteen registers.
    constexpr int kFours = (kRows + 3) / 4;
    const float* fours[kFours];
    TAPLINE_UNROLL for (int i = 0; i < kFours; ++i) {
      fours[i] = weights + 4 * i * stride + from;
    }
    const float* const end = panel + (std::min(depth, from + kRun) - from) * kLanes;
    __m512 sum[kRows];
    TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
      sum[r] = _mm512_setzero_ps();
    }
    for (; panel != end; panel += kLanes) {
      const __m512 tokens = _mm512_load_ps(panel);
      TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
        sum[r] = _mm512_fmadd_ps(_mm512_set1_ps(fours[r / 4][beside[r % 4]]), tokens, sum[r]);
      }
      TAPLINE_UNROLL for (int i = 0; i < kFours; ++i) {
        ++fours[i];
      }
    }
    TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
      whole[r] = _mm512_add_ps(whole[r], sum[r]);
    }
  }
  TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
    out[r] = whole[r];
  }
}

/// The tile of as many rows as there are.
template <int kMost>
void tile(const float* weights, int64_t stride, int64_t rows, int64_t depth, const float* panel,
          __m512* out) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return tile<kMost - 1>(weights, stride, rows, depth, panel, out);
  }
  tile_of<kMost>(weights, stride, depth, panel, out);
}

}  // namespace

template <>
void pack(const float* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel) {
  auto* const to = reinterpret_cast<float*>(panel);
  for (int64_t k = 0; k < depth; k += kLanes) {
    const int64_t columns = std::min(kLanes, depth - k);
    __m512 v[16];
    for (int64_t token = 0; token < kLanes; ++token) {
      v[token] = token < count ? _mm512_maskz_loadu_ps(first(columns), rows + token * stride + k)
                               : _mm512_setzero_ps();
    }
    transpose(v);
    for (int64_t i = 0; i < columns; ++i) _mm512_store_ps(to + (k + i) * kLanes, v[i]);
  }
}

template <>
void multiply(const float* weights, int64_t stride, int64_t rows, int64_t depth, const std::byte* panels,
              int64_t tokens, float* c, int64_t c_stride) {
  for (int64_t token = 0; token < tokens; token += kLanes, panels += panel_bytes<float>(depth)) {
    __m512 results[16] = {};
    tile<16>(weights, stride, rows, depth, reinterpret_cast<const float*>(panels), results);
    store(results, rows, tokens - token, c + token * c_stride, c_stride);
  }
}

}  // namespace tapline::products

#endif  // TAPLINE_PRODUCTS
