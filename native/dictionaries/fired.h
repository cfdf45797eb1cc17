#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapline::dictionaries {

/// A feature that fires in a row, and its activation.
struct Fired {
  int32_t feature;
  float value;
};

/// Leaves the k largest, ties to the lower feature; ascending by feature.
inline void keep_largest(std::vector<Fired>& fired, size_t k) {
  if (fired.size() > k) {
    std::nth_element(fired.begin(), fired.begin() + static_cast<std::ptrdiff_t>(k) - 1, fired.end(),
                     [](const Fired& a, const Fired& b) {
                       return a.value != b.value ? a.value > b.value : a.feature < b.feature;
                     });
    fired.resize(k);
  }
  std::sort(fired.begin(), fired.end(), [](const Fired& a, const Fired& b) { return a.feature < b.feature; });
}

}  // namespace tapline::dictionaries
