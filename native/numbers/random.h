#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace tapline {

/// Random numbers that are the same on every platform and compiler (unlike std::normal_distribution's):
/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014). `stream` separates uses of one seed.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : state_(seed) {
    state_ = next() ^ (stream * 0xd1342543de82ef95u);
  }

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  /// Uniform in [0, bound), bound >= 1, without bias.
  uint64_t below(uint64_t bound) {
    const uint64_t reject_under = (0 - bound) % bound;  // 2^64 mod bound
    for (;;) {
      const uint64_t value = next();
      if (value >= reject_under) return value % bound;
    }
  }

  /// Standard normal (Box & Muller 1958).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

  /// Fisher and Yates's shuffle.
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace tapline
