// Activations rounded to eight bits, for weights that are multiplied with bytes: ggml's function with vectors
// of sixteen, four blocks of 32 numbers at a time. Maxima, divisions and products are the same, so the bytes
// and scales have the same bits.

#ifdef TAPLINE_ROUNDING

#include "products.h"
#include "quants.h"
#include "unroll.h"

extern "C" void ggml_own_quantize_row_q8_0(const float* x, void* y, int64_t k);

#if TAPLINE_PRODUCTS == 16

namespace tapline::products {

namespace {

constexpr int64_t kBlock = 32;
constexpr int64_t kTogether = 4;

/// The greatest magnitude of each of four vectors.
__m128 greatest(const __m512* v) {
  const __m512 ab = _mm512_max_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
  const __m512 cd = _mm512_max_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
  const __m512d low = _mm512_unpacklo_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
  const __m512d high = _mm512_unpackhi_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
  const __m512 quarters = _mm512_max_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
  const __m256 halves =
      _mm256_max_ps(_mm512_castps512_ps256(quarters),
                    _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(quarters), 1)));
  return _mm_max_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
}

void round_blocks(const float* from, Q8_0* to) {
  __m512 values[2 * kTogether];
  __m512 magnitudes[kTogether];
  TAPLINE_UNROLL for (int64_t i = 0; i < kTogether; ++i) {
    values[2 * i] = _mm512_loadu_ps(from + i * kBlock);
    values[2 * i + 1] = _mm512_loadu_ps(from + i * kBlock + 16);
    magnitudes[i] = _mm512_max_ps(_mm512_abs_ps(values[2 * i]), _mm512_abs_ps(values[2 * i + 1]));
  }
  const __m128 most = greatest(magnitudes);
  const __m128 steps = _mm_set1_ps(127.0F);
  alignas(16) Half scales[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(scales), _mm_cvtps_ph(_mm_div_ps(most, steps), 0));
  const __m128 zero = _mm_cmpeq_ps(most, _mm_setzero_ps());
  alignas(16) float factors[kTogether];
  _mm_store_ps(factors, _mm_andnot_ps(zero, _mm_div_ps(steps, most)));
  TAPLINE_UNROLL for (int64_t i = 0; i < kTogether; ++i) {
    const __m512 factor = _mm512_set1_ps(factors[i]);
    to[i].scale = scales[i];
    auto* const bytes = reinterpret_cast<__m128i*>(to[i].values);
    for (int64_t half = 0; half < 2; ++half) {
      const __m512i whole = _mm512_cvt_roundps_epi32(_mm512_mul_ps(values[2 * i + half], factor),
                                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm_storeu_si128(bytes + half, _mm512_cvtsepi32_epi8(whole));
    }
  }
}

}  // namespace

}  // namespace tapline::products

#endif

void quantize_row_q8_0(const float* x, void* y, int64_t k) {
#if TAPLINE_PRODUCTS == 16
  using namespace tapline::products;
  // A thread rounds its part of row after row, which another core has often written: the next row is fetched
  // from there meanwhile. It most likely is as far away as this one from the last.
  thread_local uintptr_t last = 0;
  const auto here = reinterpret_cast<uintptr_t>(x);
  uintptr_t next = here + (here - last);
  last = here;
  auto* to = static_cast<Q8_0*>(y);
  for (; k >= kTogether * kBlock; k -= kTogether * kBlock, x += kTogether * kBlock, to += kTogether) {
    for (int64_t i = 0; i < kTogether * kBlock; i += 16, next += 64)
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
    round_blocks(x, to);
  }
  y = to;
#endif
  if (k > 0) ggml_own_quantize_row_q8_0(x, y, k);
}

#endif  // TAPLINE_ROUNDING
