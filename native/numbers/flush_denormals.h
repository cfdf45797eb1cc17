#pragma once

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#define TAPLINE_MXCSR 1
#elif defined(__aarch64__) && defined(__GNUC__)
#include <cstdint>
#define TAPLINE_FPCR 1
#endif

namespace tapline {

/// Makes this thread treat numbers below 1e-38 as zero during its lifetime. Adam's first moment of a feature
/// that stopped firing shrinks by a tenth per step, and a processor is a hundred times slower with the
/// resulting denormals.
class FlushDenormals {
 public:
#ifdef TAPLINE_MXCSR
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | 0x8040u);
  }  // results and operands
  ~FlushDenormals() {
    _mm_setcsr(before_);
  }
#elif defined(TAPLINE_FPCR)
  FlushDenormals() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    const uint64_t flushing = before_ | (uint64_t{1} << 24);  // FZ
    __asm__ volatile("msr fpcr, %0" : : "r"(flushing) : "memory");
  }
  ~FlushDenormals() {
    __asm__ volatile("msr fpcr, %0" : : "r"(before_) : "memory");
  }
#else
  FlushDenormals() {}  // not defaulted: a variable of it would count as unused
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(TAPLINE_MXCSR)
  unsigned before_;
#elif defined(TAPLINE_FPCR)
  uint64_t before_ = 0;
#endif
};

}  // namespace tapline
