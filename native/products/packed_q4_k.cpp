// One token times Q4_K weights that ggml has interleaved by eight rows. ggml sums a product every 256 numbers
// for one token and every 64 for four tokens, so a token's product would depend on whether it is among the
// last of its batch. Here one token is also summed every 64.

#include "ggml-cpu-impl.h"
#include "ggml.h"
#include "products.h"

#ifdef TAPLINE_PACKED_Q4_K  // on x86, where ggml's function is renamed

extern "C" void ggml_gemv_q4_K_8x8_q8_K(int, float*, size_t, const void*, const void*, int, int);
extern "C" void ggml_own_gemv_q4_K_8x8_q8_K(int n, float* s, size_t bs, const void* vx, const void* vy,
                                            int nr, int nc);

#ifdef TAPLINE_PRODUCTS

#include <immintrin.h>

#include <cstring>

namespace tapline::products {

namespace {

/// The rows' scales of a group, then their minima.
struct Group {
  uint64_t scales;
  uint64_t minima;

  explicit Group(const uint8_t* packed) {
    uint32_t low, high, rest;
    std::memcpy(&low, packed, 4);
    std::memcpy(&high, packed + 4, 4);
    std::memcpy(&rest, packed + 8, 4);
    const uint32_t four = 0x0F0F0F0F, six = 0x3F3F3F3F, two = 0x03030303;
    scales = (low & six) | uint64_t{(rest & four) | ((low >> 6 & two) << 4)} << 32;
    minima = (high & six) | uint64_t{(rest >> 4 & four) | ((high >> 6 & two) << 4)} << 32;
  }
};

__m256i widened(uint64_t bytes) {
  return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes)));
}

#if TAPLINE_PRODUCTS == 16 && defined(__AVX512VNNI__)

__m512i eight_bytes(const int8_t* from) {
  int64_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return _mm512_set1_epi64(bytes);
}

/// Every row's number twice, next to itself.
__m512i twice(__m256i rows) {
  const __m512i places = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return _mm512_permutexvar_epi32(places, _mm512_castsi256_si512(rows));
}

/// For each row, the products of 64 numbers with a token's, times the scales of both groups.
__m256i products_of(const uint8_t (*nibbles)[64], const int8_t* values, uint64_t scales_of_first,
                    uint64_t scales_of_second) {
  const __m512i low = _mm512_set1_epi8(0x0F);
  __m512i first = _mm512_setzero_si512();
  __m512i second = _mm512_setzero_si512();
  for (int i = 0; i < 4; ++i) {
    const __m512i bytes = _mm512_loadu_si512(nibbles[i]);
    first = _mm512_dpbusd_epi32(first, _mm512_and_si512(bytes, low), eight_bytes(values + 8 * i));
    second = _mm512_dpbusd_epi32(second, _mm512_and_si512(_mm512_srli_epi16(bytes, 4), low),
                                 eight_bytes(values + 32 + 8 * i));
  }
  const __m512i both = _mm512_add_epi32(_mm512_mullo_epi32(first, twice(widened(scales_of_first))),
                                        _mm512_mullo_epi32(second, twice(widened(scales_of_second))));
  return _mm512_cvtepi64_epi32(_mm512_add_epi64(both, _mm512_srli_epi64(both, 32)));
}

#else

__m256i eight_bytes(const int8_t* from) {
  int64_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return _mm256_set1_epi64x(bytes);
}

/// The scales of four rows in sixteen bits, each four times.
__m256i four_times(uint64_t scales, int from) {
  const __m128i places = _mm_set_epi8(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
  const auto rows = static_cast<int64_t>(scales >> 8 * from);
  return _mm256_cvtepu8_epi16(_mm_shuffle_epi8(_mm_cvtsi64_si128(rows), places));
}

__m256i products_of(const uint8_t (*nibbles)[64], const int8_t* values, uint64_t scales_of_first,
                    uint64_t scales_of_second) {
  const __m256i low = _mm256_set1_epi8(0x0F);
  __m256i halves[2];
  for (int half = 0; half < 2; ++half) {
    // Sums of eight products of four and eight bits fit into sixteen.
    __m256i first = _mm256_setzero_si256();
    __m256i second = _mm256_setzero_si256();
    for (int i = 0; i < 4; ++i) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(nibbles[i] + 32 * half));
      first = _mm256_add_epi16(
          first, _mm256_maddubs_epi16(_mm256_and_si256(bytes, low), eight_bytes(values + 8 * i)));
      second =
          _mm256_add_epi16(second, _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), low),
                                                        eight_bytes(values + 32 + 8 * i)));
    }
    halves[half] = _mm256_add_epi32(_mm256_madd_epi16(first, four_times(scales_of_first, 4 * half)),
                                    _mm256_madd_epi16(second, four_times(scales_of_second, 4 * half)));
  }
  return _mm256_permute4x64_epi64(_mm256_hadd_epi32(halves[0], halves[1]), 0xD8);
}

#endif

__m256 halves(const Half* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

void multiply_token(const Q4Kx8* weights, const Q8K* token, int blocks, float* out) {
  __m256 sum = _mm256_setzero_ps();
  __m256 sum_of_minima = _mm256_setzero_ps();
  for (int b = 0; b < blocks; ++b) {
    const __m256 own = _mm256_set1_ps(token[b].scale);
    const __m256 scale = _mm256_mul_ps(halves(weights[b].scale), own);
    const __m256 least = _mm256_mul_ps(halves(weights[b].least), own);
    for (int part = 0; part < 4; ++part) {
      const Group one(weights[b].groups[2 * part]);
      const Group two(weights[b].groups[2 * part + 1]);
      const __m256i products =
          products_of(weights[b].nibbles[part], token[b].values + 64 * part, one.scales, two.scales);
      const int16_t* const sums = token[b].sums + 4 * part;
      const __m256i minima =
          _mm256_add_epi32(_mm256_mullo_epi32(widened(one.minima), _mm256_set1_epi32(sums[0] + sums[1])),
                           _mm256_mullo_epi32(widened(two.minima), _mm256_set1_epi32(sums[2] + sums[3])));
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(products), scale, sum);
      sum_of_minima = _mm256_fmadd_ps(_mm256_cvtepi32_ps(minima), least, sum_of_minima);
    }
  }
  _mm256_storeu_ps(out, _mm256_sub_ps(sum, sum_of_minima));
}

}  // namespace

}  // namespace tapline::products

#endif

extern "C" void ggml_gemv_q4_K_8x8_q8_K(int n, float* s, size_t bs, const void* vx, const void* vy, int nr,
                                        int nc) {
#ifdef TAPLINE_PRODUCTS
  if (nr == 1) {
    using namespace tapline::products;
    const int blocks = n / 256;
    const auto* const weights = static_cast<const Q4Kx8*>(vx);
    for (int row = 0; row < nc; row += 8)
      multiply_token(weights + static_cast<int64_t>(row / 8) * blocks, static_cast<const Q8K*>(vy), blocks,
                     s + row);
    return;
  }
#endif
  ggml_own_gemv_q4_K_8x8_q8_K(n, s, bs, vx, vy, nr, nc);
}

#endif
