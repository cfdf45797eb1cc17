// One token times F16 weights. ggml sums up such a product in four vectors, but in one vector for two tokens
// and more (tinyBLAS in llamafile/sgemm.cpp), so the last bits of a token's row would depend on whether it is
// alone in its batch. With NEON it also rounds one token to half precision, but not several. Here one token
// is summed as several are.

#include "products.h"

#ifdef TAPLINE_ALONE

#ifdef TAPLINE_PRODUCTS
#include "lanes.h"
#else
#include "unroll.h"
#endif

namespace tapline::products {

namespace {

/// Rows that are summed at the same time, as one sum waits for its previous addition.
constexpr int64_t kRows = 8;

#if TAPLINE_ALONE == 16
Floats widened(const Half* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
#elif TAPLINE_ALONE == 8
Floats widened(const Half* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
#else
using Floats = float32x4_t;
Floats zeros() {
  return vdupq_n_f32(0.0F);
}
Floats fmadd(Floats a, Floats b, Floats sum) {
  return vfmaq_f32(sum, a, b);
}
Floats widened(const Half* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}
Floats widened(const float* from) {
  return vld1q_f32(from);
}
#endif

/// In ggml's order.
float sum_of(Floats v) {
#if TAPLINE_ALONE == 16
  return _mm512_reduce_add_ps(v);
#elif TAPLINE_ALONE == 8
  __m128 four = _mm_add_ps(_mm256_extractf128_ps(v, 1), _mm256_castps256_ps128(v));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
#else
  return vaddvq_f32(v);
#endif
}

template <int kCount>
void multiply_rows(const Half* weights, int64_t stride, int64_t depth, const AloneToken* token, float* c) {
  Floats sums[kCount];
  TAPLINE_UNROLL for (int r = 0; r < kCount; ++r) {
    sums[r] = zeros();
  }
  for (int64_t k = 0; k < depth; k += TAPLINE_ALONE) {
    const Floats inputs = widened(token + k);
    TAPLINE_UNROLL for (int r = 0; r < kCount; ++r) {
      sums[r] = fmadd(widened(weights + r * stride + k), inputs, sums[r]);
    }
  }
  TAPLINE_UNROLL for (int r = 0; r < kCount; ++r) {
    c[r] = sum_of(sums[r]);
  }
}

}  // namespace

void multiply_alone(const Half* weights, int64_t stride, int64_t rows, int64_t depth, const AloneToken* token,
                    float* c) {
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows)
    multiply_rows<kRows>(weights + row * stride, stride, depth, token, c + row);
  for (; row < rows; ++row) multiply_rows<1>(weights + row * stride, stride, depth, token, c + row);
}

}  // namespace tapline::products

#endif  // TAPLINE_ALONE
