#pragma once

#include <cstdint>
#include <vector>

namespace tapline {

/// Activations of a data set, one row an example, and which rows are for training; the others are held out.
struct Examples {
  const float* features = nullptr;  ///< [count, hidden]
  int count = 0;
  int hidden = 0;
  std::vector<uint8_t> train;  ///< 1 or 0 for each example
};

/// Throws kInvalidArgument when a value is NaN or infinite.
void check_finite(const Examples& examples);

}  // namespace tapline
