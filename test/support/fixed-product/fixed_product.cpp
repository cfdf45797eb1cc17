// Products of random matrices with small integers, whose sums are exact in either type and in any order,
// beside plain loops: `tapline-fixed-product COUNT` prints how many there were and how many numbers were
// wrong.

#include "graph/fixed_product.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using tapline::FixedProduct;
using tapline::ThreadTeam;

/// y = matrix x, by the definition; `matrix` is [out, in].
template <class T>
std::vector<T> expected(const std::vector<T>& matrix, const std::vector<T>& x, int rows, int out, int in) {
  std::vector<T> y;
  for (int row = 0; row < rows; ++row) {
    for (int o = 0; o < out; ++o) {
      T sum = 0;
      for (int i = 0; i < in; ++i)
        sum += matrix[static_cast<size_t>(o) * static_cast<size_t>(in) + static_cast<size_t>(i)] *
               x[static_cast<size_t>(row) * static_cast<size_t>(in) + static_cast<size_t>(i)];
      y.push_back(sum);
    }
  }
  return y;
}

template <class T>
size_t wrong(const std::vector<T>& found, const std::vector<T>& right) {
  size_t count = found.size() == right.size() ? 0 : 1;
  for (size_t k = 0; count == 0 && k < right.size(); ++k) count += found[k] == right[k] ? 0 : 1;
  return count;
}

template <class T>
size_t check(std::mt19937& random, ThreadTeam& team) {
  const auto up_to = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  const auto numbers = [&](int count) {
    std::vector<T> values(static_cast<size_t>(count));
    std::uniform_int_distribution<int> small(-4, 4);
    for (T& value : values) value = static_cast<T>(small(random));
    return values;
  };
  // More rows, columns and results than a task, a cache or a panel takes at once, and seldom a multiple of
  // any.
  const int rows = up_to(330);
  const int in = up_to(1100);
  const int out = up_to(random() % 4 == 0 ? 2200 : 150);
  const std::vector<T> matrix = numbers(out * in);
  const std::vector<T> x = numbers(rows * in);
  const std::vector<T> right = expected(matrix, x, rows, out, in);
  const T unwritten = T{1} / 3;
  std::vector<T> y(right.size(), unwritten);
  FixedProduct<T>(matrix.data(), out, in, /*transposed=*/false, team).apply(x.data(), rows, y.data(), team);
  size_t found = wrong(y, right);

  std::vector<T> turned(matrix.size());
  for (int o = 0; o < out; ++o) {
    for (int i = 0; i < in; ++i)
      turned[static_cast<size_t>(i) * static_cast<size_t>(out) + static_cast<size_t>(o)] =
          matrix[static_cast<size_t>(o) * static_cast<size_t>(in) + static_cast<size_t>(i)];
  }
  y.assign(right.size(), unwritten);
  FixedProduct<T>(turned.data(), in, out, /*transposed=*/true, team).apply(x.data(), rows, y.data(), team);
  found += wrong(y, right);

  y.assign(right.size(), unwritten);
  ThreadTeam alone(1);
  FixedProduct<T>(matrix.data(), out, in, /*transposed=*/false, alone).apply(x.data(), rows, y.data(), alone);
  return found + wrong(y, right);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 10;
  std::mt19937 random(1);
  size_t found = 0;
  for (int i = 0; i < count; ++i) {
    ThreadTeam team(1 + i % 3);
    found += check<float>(random, team) + check<double>(random, team);
  }
  std::printf("{\"products\": %d, \"wrong\": %zu}\n", 6 * count, found);
  return 0;
}
