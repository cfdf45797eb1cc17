#include "capture/lens_reading.h"

#include <algorithm>
#include <cmath>

#include "capture/exponentials.h"

namespace tapline {

namespace {

/// What two ways of adding up the same numbers may differ by.
constexpr double kRounding = 1e-6;

}  // namespace

double entropy(const float* logits, int n_vocab) {
  const WeighedSums sums = weighed(logits, n_vocab, highest_of(logits, n_vocab));
  return std::max(0.0, std::log(sums.weights) - sums.values / sums.weights);
}

double divergence(const float* p, const float* q, int n_vocab) {
  const float highest_p = highest_of(p, n_vocab);
  const float highest_q = highest_of(q, n_vocab);
  const WeighedSums sums = weighed(p, q, n_vocab, highest_p, highest_q);
  const double apart =
      sums.values / sums.weights - std::log(sums.weights) + std::log(exponentials(q, n_vocab, highest_q));
  return apart < kRounding ? 0.0 : apart;
}

}  // namespace tapline
