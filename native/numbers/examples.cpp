#include "numbers/examples.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "numbers/kernels.h"

namespace tapline {

void check_finite(const Examples& examples) {
  const size_t hidden = static_cast<size_t>(examples.hidden);
  for (size_t row = 0; row < static_cast<size_t>(examples.count); ++row) {
    const float* x = examples.features + row * hidden;
    if (best_kernels().all_finite(x, examples.hidden)) continue;
    const float* bad = std::find_if_not(x, x + hidden, [](float value) { return std::isfinite(value); });
    throw Error(ErrorCode::kInvalidArgument, "Activation " + std::to_string(bad - x) + " of example " +
                                                 std::to_string(row) + " is not a finite number.");
  }
}

}  // namespace tapline
