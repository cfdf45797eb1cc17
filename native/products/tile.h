#pragma once

#include <algorithm>

#include "lanes.h"

namespace tapline::products {

/// A tile, a row of weights a vector, goes to where each token's results lie side by side.
inline void store(Floats* tile, int64_t rows, int64_t tokens, float* c, int64_t c_stride) {
  transpose(tile);
  for (int64_t token = 0; token < std::min(tokens, kLanes); ++token)
    store_first(rows, c + token * c_stride, tile[token]);
}

}  // namespace tapline::products
