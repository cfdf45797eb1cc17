#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "numbers/kernels.h"

namespace tapline {

/// Activations of a data set, one row per example; rows that are not for training are held out.
struct Examples {
  const float* features = nullptr;  ///< [count, hidden]
  int count = 0;
  int hidden = 0;
  std::vector<uint8_t> train;  ///< 1 or 0 for each example
};

/// Throws kInvalidArgument if a value is NaN or infinite.
inline void check_finite(const Examples& examples) {
  for (int row = 0; row < examples.count; ++row) {
    const float* x = examples.features + static_cast<size_t>(row) * static_cast<size_t>(examples.hidden);
    if (best_kernels().all_finite(x, examples.hidden)) continue;
    const float* bad =
        std::find_if_not(x, x + examples.hidden, [](float value) { return std::isfinite(value); });
    throw_error(ErrorCode::kInvalidArgument, "Activation ", bad - x, " of example ", row,
                " is not a finite number.");
  }
}

}  // namespace tapline
