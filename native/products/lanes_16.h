#pragma once

// Sixteen lanes, with AVX-512: see lanes.h.

#include <immintrin.h>

#include <cstring>

#include "products.h"
#include "unroll.h"

namespace tapline::products {

using Floats = __m512;
using Ints = __m512i;

inline Floats zeros() {
  return _mm512_setzero_ps();
}
inline Floats all(float value) {
  return _mm512_set1_ps(value);
}
inline Floats load(const void* aligned) {
  return _mm512_load_ps(aligned);
}
inline void store(float* aligned, Floats v) {
  _mm512_store_ps(aligned, v);
}
inline Floats add(Floats a, Floats b) {
  return _mm512_add_ps(a, b);
}
inline Floats mul(Floats a, Floats b) {
  return _mm512_mul_ps(a, b);
}
inline Floats fmadd(Floats a, Floats b, Floats sum) {
  return _mm512_fmadd_ps(a, b, sum);
}

inline __mmask16 first(int64_t count) {
  return static_cast<__mmask16>((1U << count) - 1U);
}
inline Floats load_first(int64_t count, const float* from) {
  return _mm512_maskz_loadu_ps(first(count), from);
}
inline void store_first(int64_t count, float* to, Floats v) {
  _mm512_mask_storeu_ps(to, first(count), v);
}

inline Ints all(int32_t value) {
  return _mm512_set1_epi32(value);
}
inline Ints load_ints(const void* aligned) {
  return _mm512_load_si512(aligned);
}
inline Ints all_fours(const int8_t* bytes) {
  int32_t four;
  std::memcpy(&four, bytes, sizeof four);
  return _mm512_set1_epi32(four);
}
inline Ints add_ints(Ints a, Ints b) {
  return _mm512_add_epi32(a, b);
}
template <int kBits>
Ints shift(Ints v) {
  return _mm512_slli_epi32(v, kBits);
}
#ifdef __AVX512VNNI__
#define TAPLINE_PRODUCTS_OF_BYTES 1
/// Each lane's sum, plus the products of four unsigned with four signed bytes.
inline Ints add_products(Ints sum, Ints unsigned_bytes, Ints signed_bytes) {
  return _mm512_dpbusd_epi32(sum, unsigned_bytes, signed_bytes);
}
inline __m256i add_products_of_eight(__m256i sum, __m256i unsigned_bytes, __m256i signed_bytes) {
  return _mm256_dpbusd_epi32(sum, unsigned_bytes, signed_bytes);
}
#else
/// Where `signs` is zero, its product is zero, too.
inline Ints with_signs_of(Ints signs, Ints of) {
  return _mm512_mask_sub_epi8(of, _mm512_movepi8_mask(signs), _mm512_setzero_si512(), of);
}
inline Ints products_in_pairs(Ints unsigned_bytes, Ints signed_bytes) {
  return _mm512_maddubs_epi16(unsigned_bytes, signed_bytes);
}
inline Ints add_pairs(Ints a, Ints b) {
  return _mm512_add_epi16(a, b);
}
inline Ints sum_pairs(Ints v) {
  return _mm512_madd_epi16(v, _mm512_set1_epi16(1));
}
#endif
inline Floats to_floats(Ints v) {
  return _mm512_cvtepi32_ps(v);
}
/// The first eight lanes; the others are zero.
inline Floats from_eight(__m256i v) {
  return _mm512_castsi512_ps(_mm512_zextsi256_si512(v));
}
inline Ints from_fours(const __m128i* fours) {
  const __m256i low = _mm256_set_m128i(fours[1], fours[0]);
  const __m256i high = _mm256_set_m128i(fours[3], fours[2]);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline Floats from_halves(const Half* aligned) {
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(aligned)));
}

/// Rows become columns.
inline void transpose(Floats* v) {
  __m512 t[16];
  TAPLINE_UNROLL for (int i = 0; i < 16; i += 4) {
    const __m512d ab_low = _mm512_castps_pd(_mm512_unpacklo_ps(v[i], v[i + 1]));
    const __m512d ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(v[i], v[i + 1]));
    const __m512d cd_low = _mm512_castps_pd(_mm512_unpacklo_ps(v[i + 2], v[i + 3]));
    const __m512d cd_high = _mm512_castps_pd(_mm512_unpackhi_ps(v[i + 2], v[i + 3]));
    t[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_low, cd_low));
    t[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_low, cd_low));
    t[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high));
    t[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high));
  }
  // t[i + c] holds, in its quarter q, column 4 q + c of rows i to i + 3.
  TAPLINE_UNROLL for (int c = 0; c < 4; ++c) {
    const __m512 low01 = _mm512_shuffle_f32x4(t[c], t[c + 4], 0x44);
    const __m512 high01 = _mm512_shuffle_f32x4(t[c], t[c + 4], 0xEE);
    const __m512 low23 = _mm512_shuffle_f32x4(t[c + 8], t[c + 12], 0x44);
    const __m512 high23 = _mm512_shuffle_f32x4(t[c + 8], t[c + 12], 0xEE);
    v[c] = _mm512_shuffle_f32x4(low01, low23, 0x88);
    v[c + 4] = _mm512_shuffle_f32x4(low01, low23, 0xDD);
    v[c + 8] = _mm512_shuffle_f32x4(high01, high23, 0x88);
    v[c + 12] = _mm512_shuffle_f32x4(high01, high23, 0xDD);
  }
}

}  // namespace tapline::products
