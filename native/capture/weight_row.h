#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml.h"

namespace tapline {

struct WeightRow {
  std::vector<float> values;
  std::string reason;  // why it cannot be read, as part of a sentence; or empty
};

/// The first `count` numbers of row `row` of a weight of any type on any device: the same bits as
/// ggml_get_rows on the host.
WeightRow weight_row(const ggml_tensor* weight, int64_t row, int64_t count);

}  // namespace tapline
