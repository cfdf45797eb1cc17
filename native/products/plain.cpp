// Products of F32 weights.

#include "products.h"

#ifdef TAPLINE_PRODUCTS

#include "tile.h"

namespace tapline::products {

namespace {

/// The length of partial sums: longer ones would increase rounding.
constexpr int64_t kRun = 128;

/// The most panels of a tile: a number of the weights is loaded once for all of them. So many sums need half
/// of the rows. With AVX2, twelve sums hide the time that one takes better than eight.
constexpr int kPanels = kLanes == 16 ? 2 : 3;
constexpr int kWideTile = kLanes / 2;

/// kRows rows of weights, from `row` on, against kCount panels; results of row r go to out[panel][row + r].
template <int kRows, int kCount>
void tile_of(const WeightRows<float>& rows, int64_t row, const float* panel, int64_t panel_stride,
             Fetch& fetch, Floats (*out)[kLanes]) {
  const float* const weights = rows.row(row);
  const int64_t stride = rows.stride;
  const int64_t depth = rows.depth;
  Floats whole[kCount][kRows];
  TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
    TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
      whole[p][r] = zeros();
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
    const int64_t to = std::min(depth, from + kRun);
    const float* const end = panel + (to - from) * kLanes;
    Floats sum[kCount][kRows];
    TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
      TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
        sum[p][r] = zeros();
      }
    }
    for (; panel != end; panel += kLanes) {
      fetch.turn();
      Floats tokens[kCount];
      TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
        tokens[p] = load(panel + p * panel_stride);
      }
      TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
        const Floats weight = all(fours[r / 4][beside[r % 4]]);
        TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
          sum[p][r] = fmadd(weight, tokens[p], sum[p][r]);
        }
      }
      TAPLINE_UNROLL for (int i = 0; i < kFours; ++i) {
        ++fours[i];
      }
    }
    TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
      TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
        whole[p][r] = add(whole[p][r], sum[p][r]);
      }
    }
  }
  for (int p = 0; p < kCount; ++p) {
    TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
      out[p][row + r] = whole[p][r];
    }
  }
}

/// The tile of as many rows as there are.
template <int kMost>
void tile(const WeightRows<float>& rows, const float* panel, Fetch& fetch, Floats (*out)[kLanes]) {
  if constexpr (kMost > 1) {
    if (rows.rows < kMost) return tile<kMost - 1>(rows, panel, fetch, out);
  }
  tile_of<kMost, 1>(rows, 0, panel, 0, fetch, out);
}

/// The rows against as many panels as there are, at most kMost; returns their number.
template <int kMost>
int64_t multiply_panels(const WeightRows<float>& rows, const std::byte* panels, int64_t tokens, Fetch& fetch,
                        float* c, int64_t c_stride) {
  Floats results[kMost][kLanes] = {};
  const auto* const panel = reinterpret_cast<const float*>(panels);
  if constexpr (kMost > 1) {
    // Four panels are twice two.
    const int64_t count = (tokens + kLanes - 1) / kLanes;
    if (rows.rows < kLanes || count < kMost || (kMost == 3 && count == 4))
      return multiply_panels<kMost - 1>(rows, panels, tokens, fetch, c, c_stride);
    const int64_t stride = rows.depth * kLanes;
    for (int64_t row = 0; row < kLanes; row += kWideTile)
      tile_of<kWideTile, kMost>(rows, row, panel, stride, fetch, results);
  } else {
    tile<kLanes>(rows, panel, fetch, results);
  }
  for (int64_t p = 0; p < kMost; ++p)
    store(results[p], rows.rows, tokens - p * kLanes, c + p * kLanes * c_stride, c_stride);
  return kMost;
}

}  // namespace

template <>
void pack(const float* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel) {
  auto* const to = reinterpret_cast<float*>(panel);
  for (int64_t k = 0; k < depth; k += kLanes) {
    const int64_t columns = std::min(kLanes, depth - k);
    Floats v[kLanes];
    for (int64_t token = 0; token < kLanes; ++token) {
      v[token] = token < count ? load_first(columns, rows + token * stride + k) : zeros();
    }
    transpose(v);
    for (int64_t i = 0; i < columns; ++i) store(to + (k + i) * kLanes, v[i]);
  }
}

template <>
void multiply(const WeightRows<float>& weights, const std::byte* panels, int64_t tokens, float* c,
              int64_t c_stride) {
  // A line of the next rows with every number.
  Fetch fetch(weights, weights.depth);
  for (int64_t token = 0; token < tokens;) {
    const int64_t done =
        multiply_panels<kPanels>(weights, panels, tokens - token, fetch, c + token * c_stride, c_stride);
    token += done * kLanes;
    panels += static_cast<size_t>(done) * panel_bytes<float>(weights.depth);
  }
}

}  // namespace tapline::products

#endif  // TAPLINE_PRODUCTS
