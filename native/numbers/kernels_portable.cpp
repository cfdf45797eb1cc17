// What every target can run: SSE2 on x86-64, NEON on 64-bit ARM, through the compiler's own vector types.
#include <cmath>
#include <cstring>
#include <limits>

#include "numbers/kernels.h"

#define TAPLINE_TARGET

namespace {
constexpr int kBytes = 16;
#if defined(__aarch64__) || defined(_M_ARM64)
constexpr int kRows = 6;  // 32 registers: 6 x 4 sums
constexpr int kColumns = 4;
#else
constexpr int kRows = 4;  // 16 registers: 4 x 2 sums
constexpr int kColumns = 2;
#endif

inline void sqrt_in_place(float* x) {
  for (int j = 0; j < 32; ++j) x[j] = std::sqrt(x[j]);
}
}  // namespace

#include "numbers/kernels.inc"

namespace tapline {

const Kernels& portable_kernels() {
  static constexpr Kernels table = table_of("portable");
  return table;
}

}  // namespace tapline
