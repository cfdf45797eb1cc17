#include "numbers/kernels.h"

#ifdef TAPLINE_X86_KERNELS
#include <immintrin.h>

#include <cmath>
#include <cstring>
#include <limits>

#define TAPLINE_TARGET __attribute__((target("avx2,fma")))

namespace {
constexpr int kBytes = 32;
constexpr int kRows = 6;
constexpr int kColumns = 2;

TAPLINE_TARGET inline void sqrt_in_place(float* x) {
  for (int j = 0; j < 32; j += 8) _mm256_storeu_ps(x + j, _mm256_sqrt_ps(_mm256_loadu_ps(x + j)));
}
}  // namespace

#include "numbers/kernels.inc"

namespace tapline {
const Kernels& avx2_kernels() {
  static constexpr Kernels table = table_of("avx2");
  return table;
}
}  // namespace tapline
#endif
