#pragma once

#include <cmath>
#include <vector>

namespace tapline {

/// Eight sums at a time, so that no product waits for the one before.
template <class A, class B>
double dot(const A* a, const B* b, int count) {
  constexpr int kSums = 8;
  double sums[kSums] = {};
  int k = 0;
  for (; k + kSums <= count; k += kSums) {
    for (int j = 0; j < kSums; ++j) sums[j] += static_cast<double>(a[k + j]) * static_cast<double>(b[k + j]);
  }
  for (; k < count; ++k) sums[0] += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  for (int j = 1; j < kSums; ++j) sums[0] += sums[j];
  return sums[0];
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
