#pragma once

namespace tapline {

/// Sums over the exponentials of a row of logits less the highest of them, many at a time. Each exponential
/// is right to a few units of its last place, and the sums to 1e-6 of themselves; NaN among the logits, or
/// none that is finite, gives NaN.

/// The highest of n >= 1 numbers; NaN are passed over.
float highest_of(const float* values, int n);

/// sum exp(l - highest)
double exponentials(const float* logits, int n, float highest);

struct WeighedSums {
  double weights = 0;  // sum w, with w = exp(l - highest)
  double values = 0;   // sum w v; where w is zero, so is the summand
};
/// With v = l - highest.
WeighedSums weighed(const float* logits, int n, float highest);
/// With v = (l - highest) - (o - highest_other).
WeighedSums weighed(const float* logits, const float* others, int n, float highest, float highest_other);

}  // namespace tapline
