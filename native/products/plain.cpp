// Products of F32 weights.

#include "products.h"

#ifdef TAPLINE_PRODUCTS

#include "tile.h"

namespace tapline::products {

namespace {

/// The length of partial sums: longer ones would increase rounding.
constexpr int64_t kRun = 128;

/// Panels of a tile, if there are several: a number of the weights is loaded once for all of them. So many
/// sums need half of the rows.
constexpr int kPanels = 2;
constexpr int kHalf = kLanes / 2;

/// kRows rows of weights against kCount panels; results of row r go to out[panel][at + r].
template <int kRows, int kCount>
void tile_of(const float* weights, int64_t stride, int64_t depth, const float* panel, int64_t panel_stride,
             __m512 (*out)[kLanes], int64_t at) {
  __m512 whole[kCount][kRows];
  TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
    TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
      whole[p][r] = _mm512_setzero_ps();
    }
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
    __m512 sum[kCount][kRows];
    TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
      TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
        sum[p][r] = _mm512_setzero_ps();
      }
    }
    for (; panel != end; panel += kLanes) {
      __m512 tokens[kCount];
      TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
        tokens[p] = _mm512_load_ps(panel + p * panel_stride);
      }
      TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
        const __m512 weight = _mm512_set1_ps(fours[r / 4][beside[r % 4]]);
        TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
          sum[p][r] = _mm512_fmadd_ps(weight, tokens[p], sum[p][r]);
        }
      }
      TAPLINE_UNROLL for (int i = 0; i < kFours; ++i) {
        ++fours[i];
      }
    }
    TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
      TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
        whole[p][r] = _mm512_add_ps(whole[p][r], sum[p][r]);
      }
    }
  }
  for (int p = 0; p < kCount; ++p) {
    TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
      out[p][at + r] = whole[p][r];
    }
  }
}

/// The tile of as many rows as there are.
template <int kMost>
void tile(const float* weights, int64_t stride, int64_t rows, int64_t depth, const float* panel,
          __m512 (*out)[kLanes]) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return tile<kMost - 1>(weights, stride, rows, depth, panel, out);
  }
  tile_of<kMost, 1>(weights, stride, depth, panel, 0, out, 0);
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
  const auto bytes = static_cast<int64_t>(panel_bytes<float>(depth));
  __m512 results[kPanels][kLanes] = {};
  int64_t token = 0;
  for (; rows == kLanes && token + kLanes < tokens; token += kPanels * kLanes, panels += kPanels * bytes) {
    const auto* const panel = reinterpret_cast<const float*>(panels);
    for (int64_t row = 0; row < kLanes; row += kHalf)
      tile_of<kHalf, kPanels>(weights + row * stride, stride, depth, panel, bytes / 4, results, row);
    for (int64_t p = 0; p < kPanels; ++p) {
      const int64_t first = token + p * kLanes;
      store(results[p], rows, tokens - first, c + first * c_stride, c_stride);
    }
  }
  for (; token < tokens; token += kLanes, panels += bytes) {
    tile<kLanes>(weights, stride, rows, depth, reinterpret_cast<const float*>(panels), results);
    store(results[0], rows, tokens - token, c + token * c_stride, c_stride);
  }
}

}  // namespace tapline::products

#endif  // TAPLINE_PRODUCTS
