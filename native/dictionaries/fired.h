#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapline::dictionaries {

/// An active feature of a row.
struct Fired {
  int32_t feature;
  float value;
};

/// Keeps the k largest, in ties the lower feature; sorts by feature.
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
