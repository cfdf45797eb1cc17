#pragma once

// Products of bytes in matrix registers: sixteen rows of weights with sixteen tokens, a block of 32 numbers
// each. The sums are exact integers, and scales are applied as elsewhere, so the results have the same bits
// as without matrix registers.

#include "amx.h"
#include "products.h"

#ifdef TAPLINE_AMX
#define TAPLINE_BYTE_TILES 1

#include "lanes.h"

namespace tapline::products {

/// Bytes of a block of one row, and of sixteen rows.
constexpr int64_t kTileRow = 32;
constexpr int64_t kTileBlock = kTileRow * kLanes;

/// Sixteen rows of weights: values[block][row][32], scale[block][row], and `least` alike or null.
struct TileRows {
  const int8_t* values;
  const float* scale;
  const float* least;
  int64_t depth;  // blocks of a row
};

/// Pairs of blocks of a product, for as many turns of fetching.
inline int64_t turns_of_byte_tiles(int64_t depth, int64_t tokens) {
  return (depth + 1) / 2 * ((tokens + kLanes - 1) / kLanes);
}

/// Results with the tokens of all panels (of Q8_0, or Q8_1 with `least`): c[token * c_stride + row].
void multiply_byte_tiles(const TileRows& rows, const std::byte* panels, int64_t tokens, Fetch fetch, float* c,
                         int64_t c_stride);

}  // namespace tapline::products

#endif
