#pragma once

#include <cmath>

#include "capture/exponentials.h"

namespace tapline {

/// The softmax over one row of logits, exp(l - highest) / sum, without overflow. NaN if a logit is NaN or all
/// are minus infinity.
class Softmax {
 public:
  Softmax(const float* logits, int n_vocab) : Softmax(logits, n_vocab, highest_of(logits, n_vocab)) {}
  /// For a known highest logit.
  Softmax(const float* logits, int n_vocab, float highest)
      : highest_(highest), sum_(exponentials(logits, n_vocab, highest)) {}

  float probability(float logit) const {
    return static_cast<float>(std::exp(double(logit - highest_)) / sum_);
  }
  /// Natural logarithm, exact even if the probability would be rounded to zero.
  double log_probability(float logit) const { return double(logit) - double(highest_) - std::log(sum_); }

 private:
  float highest_;
  double sum_;
};

}  // namespace tapline
