#pragma once

// Eight lanes, with AVX2: see lanes.h.

#include <immintrin.h>

#include <cstring>

#include "products.h"
#include "unroll.h"

namespace tapline::products {

using Floats = __m256;
using Ints = __m256i;

inline Floats zeros() {
  return _mm256_setzero_ps();
}
inline Floats all(float value) {
  return _mm256_set1_ps(value);
}
inline Floats load(const void* aligned) {
  return _mm256_load_ps(static_cast<const float*>(aligned));
}
inline void store(float* aligned, Floats v) {
  _mm256_store_ps(aligned, v);
}
inline Floats add(Floats a, Floats b) {
  return _mm256_add_ps(a, b);
}
inline Floats mul(Floats a, Floats b) {
  return _mm256_mul_ps(a, b);
}
inline Floats fmadd(Floats a, Floats b, Floats sum) {
  return _mm256_fmadd_ps(a, b, sum);
}

inline __m256i first(int64_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count)), lanes);
}
inline Floats load_first(int64_t count, const float* from) {
  return _mm256_maskload_ps(from, first(count));
}
inline void store_first(int64_t count, float* to, Floats v) {
  if (count == kLanes) return _mm256_storeu_ps(to, v);
  _mm256_maskstore_ps(to, first(count), v);
}

inline Ints all(int32_t value) {
  return _mm256_set1_epi32(value);
}
inline Ints load_ints(const void* aligned) {
  return _mm256_load_si256(static_cast<const __m256i*>(aligned));
}
inline Ints all_fours(const int8_t* bytes) {
  int32_t four;
  std::memcpy(&four, bytes, sizeof four);
  return _mm256_set1_epi32(four);
}
inline Ints add_ints(Ints a, Ints b) {
  return _mm256_add_epi32(a, b);
}
template <int kBits>
Ints shift(Ints v) {
  return _mm256_slli_epi32(v, kBits);
}
#ifdef __AVXVNNI__
#define TAPLINE_PRODUCTS_OF_BYTES 1
inline Ints add_products(Ints sum, Ints unsigned_bytes, Ints signed_bytes) {
  return _mm256_dpbusd_avx_epi32(sum, unsigned_bytes, signed_bytes);
}
inline __m256i add_products_of_eight(__m256i sum, __m256i unsigned_bytes, __m256i signed_bytes) {
  return add_products(sum, unsigned_bytes, signed_bytes);
}
#else
inline Ints with_signs_of(Ints signs, Ints of) {
  return _mm256_sign_epi8(of, signs);
}
inline Ints products_in_pairs(Ints unsigned_bytes, Ints signed_bytes) {
  return _mm256_maddubs_epi16(unsigned_bytes, signed_bytes);
}
inline Ints add_pairs(Ints a, Ints b) {
  return _mm256_add_epi16(a, b);
}
inline Ints sum_pairs(Ints v) {
  return _mm256_madd_epi16(v, _mm256_set1_epi16(1));
}
#endif
inline Floats to_floats(Ints v) {
  return _mm256_cvtepi32_ps(v);
}
inline Floats from_eight(__m256i v) {
  return _mm256_castsi256_ps(v);
}
inline Ints from_fours(const __m128i* fours) {
  return _mm256_set_m128i(fours[1], fours[0]);
}
inline Floats from_halves(const Half* aligned) {
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(aligned)));
}

inline void transpose(Floats* v) {
  __m256 t[8];
  TAPLINE_UNROLL for (int i = 0; i < 8; i += 4) {
    const __m256d ab_low = _mm256_castps_pd(_mm256_unpacklo_ps(v[i], v[i + 1]));
    const __m256d ab_high = _mm256_castps_pd(_mm256_unpackhi_ps(v[i], v[i + 1]));
    const __m256d cd_low = _mm256_castps_pd(_mm256_unpacklo_ps(v[i + 2], v[i + 3]));
    const __m256d cd_high = _mm256_castps_pd(_mm256_unpackhi_ps(v[i + 2], v[i + 3]));
    t[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab_low, cd_low));
    t[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab_low, cd_low));
    t[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab_high, cd_high));
    t[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab_high, cd_high));
  }
  // t[i + c] holds, in its half h, column 4 h + c of rows i to i + 3.
  TAPLINE_UNROLL for (int c = 0; c < 4; ++c) {
    v[c] = _mm256_permute2f128_ps(t[c], t[c + 4], 0x20);
    v[c + 4] = _mm256_permute2f128_ps(t[c], t[c + 4], 0x31);
  }
}

}  // namespace tapline::products
