#pragma once

// The two products of attention, of sixteen rows and sixteen cells: queries with keys, weights with values.

#include <cstdint>

#include "unroll.h"

namespace tapline::products {

/// Rows per vector, each a query head's token; and cells that are converted to F32 together.
constexpr int kRows = 16;
constexpr int kCells = 16;
typedef float Lanes __attribute__((vector_size(4 * kRows)));
typedef float HalfLanes __attribute__((vector_size(2 * kRows)));
typedef double WideLanes __attribute__((vector_size(4 * kRows)));

// The tile sizes that fit the registers. The order of sums does not depend on them.
#if defined(__AVX512F__)
constexpr int kCellTile = 8;
constexpr int kWidthTile = 4;
#else
constexpr int kCellTile = 4;
constexpr int kWidthTile = 1;
#endif
constexpr int kRowTile = 4;

/// out[cell][row]: products of each query, `queries` [depth][row], with each key, [cell][depth].
inline void multiply_keys(const float* queries, const float* keys, int64_t depth, float* out) {
  for (int first = 0; first < kCells; first += kCellTile) {
    Lanes sums[kCellTile] = {};
    const float* const own = keys + first * depth;
    for (int64_t d = 0; d < depth; ++d) {
      const Lanes query = *reinterpret_cast<const Lanes*>(queries + d * kRows);
      TAPLINE_UNROLL for (int c = 0; c < kCellTile; ++c) {
        sums[c] += query * own[c * depth + d];
      }
    }
    for (int c = 0; c < kCellTile; ++c) *reinterpret_cast<Lanes*>(out + (first + c) * kRows) = sums[c];
  }
}

/// out[row][width] += weights[cell][row] * values[cell][width], cell after cell.
template <int kCount, int kVectors>
void add_values(const float* weights, const float* values, int64_t width, float* out) {
  Lanes sums[kCount][kVectors];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = *reinterpret_cast<const Lanes*>(out + r * width + v * kRows);
  }
  for (int cell = 0; cell < kCells; ++cell) {
    Lanes value[kVectors];
    TAPLINE_UNROLL for (int v = 0; v < kVectors; ++v) {
      value[v] = *reinterpret_cast<const Lanes*>(values + cell * width + v * kRows);
    }
    TAPLINE_UNROLL for (int r = 0; r < kCount; ++r) {
      const float weight = weights[cell * kRows + r];
      TAPLINE_UNROLL for (int v = 0; v < kVectors; ++v) {
        sums[r][v] += value[v] * weight;
      }
    }
  }
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Lanes*>(out + r * width + v * kRows) = sums[r][v];
  }
}

template <int kCount>
void add_values_of_rows(const float* weights, const float* values, int64_t width, float* out) {
  int64_t at = 0;
  for (; at + kWidthTile * kRows <= width; at += kWidthTile * kRows)
    add_values<kCount, kWidthTile>(weights, values + at, width, out + at);
  for (; at < width; at += kRows) add_values<kCount, 1>(weights, values + at, width, out + at);
}

}  // namespace tapline::products
