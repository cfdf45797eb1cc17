#pragma once

#include <cmath>
#include <vector>

namespace tapline {

template <class A, class B>
double dot(const A* a, const B* b, int count) {
  double sum = 0;
  for (int k = 0; k < count; ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum;
}

/// `given` minus `mine`, appended to `difference`; returns its length over that of `given`.
template <class T>
double subtract(const std::vector<float>& given, const std::vector<T>& mine, std::vector<T>& difference) {
  double squares = 0;
  double size = 0;
  for (size_t k = 0; k < given.size(); ++k) {
    difference.push_back(static_cast<T>(given[k]) - mine[k]);
    squares += static_cast<double>(difference.back()) * static_cast<double>(difference.back());
    size += static_cast<double>(given[k]) * static_cast<double>(given[k]);
  }
  return size == 0 ? std::sqrt(squares) : std::sqrt(squares / size);
}

}  // namespace tapline
