#pragma once

namespace tapline {

// Sums over exponentials of a row of logits minus the highest, vectorised. Each exponential is exact to a few
// units in the last place, and the sums to a relative 1e-6. NaN among the logits, or no finite logit, gives
// NaN.

/// The highest of n >= 1 numbers; NaN are ignored.
float highest_of(const float* values, int n);

/// sum exp(l - highest)
double exponentials(const float* logits, int n, float highest);

struct WeighedSums {
  double weights = 0;  // sum w, with w = exp(l - highest)
  double values = 0;   // sum w v; zero for w = 0
};
/// With v = l - highest.
WeighedSums weighed(const float* logits, int n, float highest);
/// With v = (l - highest) - (o - highest_other).
WeighedSums weighed(const float* logits, const float* others, int n, float highest, float highest_other);

}  // namespace tapline
