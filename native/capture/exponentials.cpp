#include "capture/exponentials.h"

#include <cstdint>
#include <cstring>
#include <limits>

// One copy per processor level, chosen when the addon is loaded: this file is compiled for any x86-64, unlike
// ggml. Older compilers do not know these names, musl does not support the choice, and neither do sanitizers.
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TAPLINE_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TAPLINE_EACH_PROCESSOR
#endif

// Inlined into each of these copies, so that it is compiled for the same processor.
#if defined(__GNUC__) || defined(__clang__)
#define TAPLINE_INLINED __attribute__((always_inline))
#else
#define TAPLINE_INLINED
#endif

namespace tapline {

namespace {

constexpr int kLanes = 16;
/// The number of float32 values that are summed before the sum is added to a double.
constexpr int kBlock = 256;
/// Below it the exponential would be subnormal and counts as zero.
constexpr float kLeast = -87.0F;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// exp(x) for x <= 0, 1 to a few units of the last place: 2^n exp(r) with |r| <= ln 2 / 2 (the polynomial is
/// Cephes'). Without branches, so that a compiler can do many at once. NaN stays NaN.
TAPLINE_INLINED inline float exponential(float x) {
  const float bounded = x < kLeast ? kLeast : x;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: added, it leaves the nearest whole number in the bits
  const float shifted = bounded * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  uint32_t bits = 0;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits << 23U) + 0x3F800000U;
  float power = 0;
  std::memcpy(&power, &bits, sizeof(power));
  return x < kLeast ? 0.0F : p * power;
}

double total(const float* lanes) {
  double sum = 0;
  for (int k = 0; k < kLanes; ++k) sum += static_cast<double>(lanes[k]);
  return sum;
}

/// With v = value(i, l - highest) of logit i.
template <class Value>
TAPLINE_INLINED inline WeighedSums weighed_by(const float* logits, int n, float highest, Value value) {
  WeighedSums sums;
  int i = 0;
  while (i + kLanes <= n) {
    const int end = i + kBlock < n ? i + kBlock : n;
    float weights[kLanes] = {};
    float values[kLanes] = {};
    for (; i + kLanes <= end; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) {
        const float below = logits[i + k] - highest;
        const float weight = exponential(below);
        weights[k] += weight;
        values[k] += weight == 0.0F ? 0.0F : weight * value(i + k, below);
      }
    }
    sums.weights += total(weights);
    sums.values += total(values);
  }
  for (; i < n; ++i) {
    const float below = logits[i] - highest;
    const float weight = exponential(below);
    sums.weights += static_cast<double>(weight);
    sums.values += weight == 0.0F ? 0.0 : static_cast<double>(weight * value(i, below));
  }
  return sums;
}

}  // namespace

TAPLINE_EACH_PROCESSOR
float highest_of(const float* values, int n) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = kLowest;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lanes[k] = values[i + k] > lanes[k] ? values[i + k] : lanes[k];
  }
  float highest = kLowest;
  for (const float lane : lanes) highest = lane > highest ? lane : highest;
  for (; i < n; ++i) highest = values[i] > highest ? values[i] : highest;
  return highest;
}

TAPLINE_EACH_PROCESSOR
double exponentials(const float* logits, int n, float highest) {
  double sum = 0;
  int i = 0;
  while (i + kLanes <= n) {
    const int end = i + kBlock < n ? i + kBlock : n;
    float lanes[kLanes] = {};
    for (; i + kLanes <= end; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) lanes[k] += exponential(logits[i + k] - highest);
    }
    sum += total(lanes);
  }
  for (; i < n; ++i) sum += static_cast<double>(exponential(logits[i] - highest));
  return sum;
}

TAPLINE_EACH_PROCESSOR
WeighedSums weighed(const float* logits, int n, float highest) {
  return weighed_by(logits, n, highest, [](int, float below) TAPLINE_INLINED { return below; });
}

TAPLINE_EACH_PROCESSOR
WeighedSums weighed(const float* logits, const float* others, int n, float highest, float highest_other) {
  return weighed_by(logits, n, highest,
                    [=](int i, float below) TAPLINE_INLINED { return below - (others[i] - highest_other); });
}

}  // namespace tapline
