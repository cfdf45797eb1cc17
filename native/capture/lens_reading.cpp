#include "capture/lens_reading.h"

#include <algorithm>
#include <cmath>

namespace tapline {

namespace {

/// What two ways of adding up the same numbers may differ by.
constexpr double kRounding = 1e-9;

double log_sum(const float* logits, int n_vocab, float highest) {
  double sum = 0;
  for (int i = 0; i < n_vocab; ++i) sum += std::exp(logits[i] - highest);
  return std::log(sum);
}

}  // namespace

double entropy(const float* logits, int n_vocab) {
  const float highest = *std::max_element(logits, logits + n_vocab);
  double sum = 0;
  double mean = 0;
  for (int i = 0; i < n_vocab; ++i) {
    const float below = logits[i] - highest;
    const float weight = std::exp(below);
    if (weight == 0) continue;  // minus infinity times nothing
    sum += weight;
    mean += double(weight) * double(below);
  }
  return std::max(0.0, std::log(sum) - mean / sum);
}

double divergence(const float* p, const float* q, int n_vocab) {
  const float highest_p = *std::max_element(p, p + n_vocab);
  const float highest_q = *std::max_element(q, q + n_vocab);
  double sum = 0;
  double mean = 0;
  for (int i = 0; i < n_vocab; ++i) {
    const float below = p[i] - highest_p;
    const float weight = std::exp(below);
    if (weight == 0) continue;
    sum += weight;
    mean += double(weight) * (double(below) - (double(q[i]) - double(highest_q)));
  }
  const double apart = mean / sum - std::log(sum) + log_sum(q, n_vocab, highest_q);
  return apart < kRounding ? 0.0 : apart;
}

}  // namespace tapline
