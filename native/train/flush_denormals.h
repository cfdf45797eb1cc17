#pragma once

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#define TAPLINE_MXCSR 1
#endif

namespace tapline::train {

/// While it lives, this thread takes numbers below 1e-38 for zero. Adam's first moment of a feature that no
/// longer fires shrinks by a tenth a step, and a processor is a hundred times slower at what it then becomes.
class FlushDenormals {
 public:
#ifdef TAPLINE_MXCSR
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | 0x8040u);
  }  // results and operands
  ~FlushDenormals() {
    _mm_setcsr(before_);
  }
#else
  FlushDenormals() = default;
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#ifdef TAPLINE_MXCSR
  unsigned before_;
#endif
};

}  // namespace tapline::train
