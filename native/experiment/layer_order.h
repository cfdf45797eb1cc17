#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace tapline {

/// What was found layer by layer, `ascending`, in the order in which the layers were asked for.
template <class T>
std::vector<T> in_order_of(const std::vector<int>& asked, const std::vector<int>& ascending,
                           std::vector<T>&& found) {
  std::vector<T> ordered;
  ordered.reserve(found.size());
  for (const int layer : asked) {
    const auto at = std::lower_bound(ascending.begin(), ascending.end(), layer);
    ordered.push_back(std::move(found[static_cast<size_t>(at - ascending.begin())]));
  }
  return ordered;
}

}  // namespace tapline
