#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml.h"

namespace tapline {

struct WeightRow {
  std::vector<float> values;
  std::string reason;  // why it cannot be read, the rest of a sentence; empty where it can
};

/// The first `count` numbers of row `row` of a weight, whatever type it has and wherever it lies: as
/// ggml_get_rows reads them on the host, to the bit.
WeightRow weight_row(const ggml_tensor* weight, int64_t row, int64_t count);

}  // namespace tapline
