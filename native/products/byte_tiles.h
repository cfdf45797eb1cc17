#pragma once

// Tiles of bytes, which some processors with AVX-512 multiply with one instruction (Intel's AMX): sixteen
// rows of weights with sixteen tokens, a block of 32 numbers each. The sums are exact integers, and scales
// are applied as elsewhere, so the results have the same bits as without tiles.

#include "lanes.h"

#if TAPLINE_PRODUCTS == 16 && defined(TAPLINE_PRODUCTS_QUANTISED) && defined(__GNUC__) && defined(__linux__)
#define TAPLINE_PRODUCTS_TILES 1

#include <cstddef>
#include <cstdint>

namespace tapline::products {

/// Whether the processor has tiles of bytes and the kernel lets this process use them.
bool has_byte_tiles();

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

/// Results with the tokens of all panels (of Q8_0, or Q8_1 with `least`): c[token * c_stride + row].
void multiply_byte_tiles(const TileRows& rows, const std::byte* panels, int64_t tokens, float* c,
                         int64_t c_stride);

}  // namespace tapline::products

#endif
