#include "numbers/kernels.h"

#ifdef TAPLINE_X86_KERNELS
#include <immintrin.h>

#include <cmath>
#include <cstring>
#include <limits>

#define TAPLINE_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))

namespace {
constexpr int kBytes = 64;
constexpr int kRows = 12;
constexpr int kColumns = 2;

TAPLINE_TARGET inline void sqrt_in_place(float* x) {
  _mm512_storeu_ps(x, _mm512_maskz_sqrt_ps(0xffff, _mm512_loadu_ps(x)));
  _mm512_storeu_ps(x + 16, _mm512_maskz_sqrt_ps(0xffff, _mm512_loadu_ps(x + 16)));
}
}  // namespace

#include "numbers/kernels.inc"

namespace tapline {
const Kernels& avx512_kernels() {
  static constexpr Kernels table = table_of("avx512");
  return table;
}
}  // namespace tapline
#endif
