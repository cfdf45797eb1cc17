#pragma once

#include <immintrin.h>

#include <algorithm>

#include "products.h"
#include "unroll.h"

namespace tapline::products {

inline __mmask16 first(int64_t count) {
  return static_cast<__mmask16>((1U << static_cast<unsigned>(std::min(count, kLanes))) - 1U);
}

/// Rows become columns.
inline void transpose(__m512* v) {
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

/// A tile, a row of weights a vector, goes to where each token's results lie side by side.
inline void store(__m512* tile, int64_t rows, int64_t tokens, float* c, int64_t c_stride) {
  transpose(tile);
  const __mmask16 mask = first(rows);
  for (int64_t token = 0; token < std::min(tokens, kLanes); ++token)
    _mm512_mask_storeu_ps(c + token * c_stride, mask, tile[token]);
}

}  // namespace tapline::products
