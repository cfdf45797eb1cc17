#pragma once

// Vectors of the products: sixteen lanes with AVX-512, eight with AVX2. Both files have the same functions,
// and a lane computes the same in both.

#include "products.h"

#if TAPLINE_PRODUCTS == 16
#include "lanes_16.h"
#else
#include "lanes_8.h"
#endif

namespace tapline::products {

/// Bytes of a vector.
constexpr int64_t kVector = 4 * kLanes;

}  // namespace tapline::products
