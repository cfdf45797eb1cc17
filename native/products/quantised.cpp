// Products of weights in blocks of 32, four to eight bits each, with tokens rounded to eight.

#include "products.h"

#ifdef TAPLINE_PRODUCTS_QUANTISED

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tile.h"

namespace tapline::products {

namespace {

/// Rows per tile, so that their sums, the tokens' bytes and one product fit the registers.
constexpr int kTile = 8;

template <class Block>
constexpr bool kHasLeast = std::is_same_v<Block, Q4_1> || std::is_same_v<Block, Q5_1>;
template <class Block>
constexpr bool kHasFifth = std::is_same_v<Block, Q5_0> || std::is_same_v<Block, Q5_1>;

float from_half(Half half) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

int32_t four_bytes(const int8_t* from) {
  int32_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

__m256i values_of(const Q8_0& block) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.values));
}

template <class Block>
__m256i values_of(const Block& block) {
  const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block.nibbles));
  const __m256i both = _mm256_set_m128i(_mm_srli_epi16(pairs, 4), pairs);
  __m256i values = _mm256_and_si256(both, _mm256_set1_epi8(0x0F));
  if constexpr (kHasFifth<Block>) {
    uint32_t fifth;
    std::memcpy(&fifth, block.fifth, sizeof fifth);
    values = _mm256_or_si256(values, _mm256_maskz_mov_epi8(fifth, _mm256_set1_epi8(16)));
  }
  if constexpr (std::is_same_v<Block, Q5_0>) values = _mm256_sub_epi8(values, _mm256_set1_epi8(16));
  return values;
}

/// Sixteen rows of weights for tiles. Values of Q8_0 are not copied.
struct Rows {
  const int8_t* values = nullptr;
  int64_t row_stride = 0;    // in bytes
  int64_t block_stride = 0;  // in bytes
  std::vector<float> scale;
  std::vector<float> least;
  std::vector<int32_t> excess;  // corrects for the 128 that is added to each of the tokens' bytes
  std::vector<int8_t> unpacked;

  template <class Block>
  void read(const Block* weights, int64_t stride, int64_t rows, int64_t depth) {
    const auto blocks = static_cast<size_t>(kLanes * depth);
    scale.resize(blocks);
    excess.resize(blocks);
    if constexpr (kHasLeast<Block>) least.resize(blocks);
    if constexpr (std::is_same_v<Block, Q8_0>) {
      values = weights->values;
      row_stride = stride * static_cast<int64_t>(sizeof(Block));
      block_stride = sizeof(Block);
    } else {
      unpacked.resize(blocks * 32);
      values = unpacked.data();
      row_stride = depth * 32;
      block_stride = 32;
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t b = 0; b < depth; ++b) {
        const Block& block = weights[r * stride + b];
        const auto at = static_cast<size_t>(r * depth + b);
        scale[at] = from_half(block.scale);
        if constexpr (kHasLeast<Block>) least[at] = from_half(block.least);
        const __m256i numbers = values_of(block);
        excess[at] = -128 * sum(numbers);
        if constexpr (!std::is_same_v<Block, Q8_0>)
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(unpacked.data() + at * 32), numbers);
      }
    }
  }

  static int32_t sum(__m256i bytes) {
    const __m256i eight = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1));
    return _mm_cvtsi128_si32(four);
  }
};

/// kRows rows of weights, from `row` on, against one panel.
template <class Token, int kRows>
void tile_of(const Rows& rows, int64_t row, int64_t depth, const std::byte* panel, __m512* out) {
  constexpr bool kSums = std::is_same_v<Token, Q8_1>;
  constexpr int kBefore = kSums ? 128 : 64;
  const int8_t* values = rows.values + row * rows.row_stride;
  const float* const scale = rows.scale.data() + row * depth;
  const int32_t* const excess = rows.excess.data() + row * depth;
  __m512 sum[kRows];
  TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
    sum[r] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < depth; ++b, values += rows.block_stride, panel += panel_bytes<Token>(1)) {
    const __m512 scales = _mm512_load_ps(panel);
    __m512i tokens[8];
    TAPLINE_UNROLL for (int i = 0; i < 8; ++i) {
      tokens[i] = _mm512_load_si512(panel + kBefore + 64 * i);
    }
    TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
      const int8_t* const own = values + r * rows.row_stride;
      __m512i dot = _mm512_set1_epi32(excess[r * depth + b]);
      TAPLINE_UNROLL for (int i = 0; i < 8; ++i) {
        dot = _mm512_dpbusd_epi32(dot, tokens[i], _mm512_set1_epi32(four_bytes(own + 4 * i)));
      }
      const __m512 factor = _mm512_mul_ps(scales, _mm512_set1_ps(scale[r * depth + b]));
      sum[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), factor, sum[r]);
      if constexpr (kSums) {
        const __m512 least = _mm512_set1_ps(rows.least[static_cast<size_t>((row + r) * depth + b)]);
        sum[r] = _mm512_fmadd_ps(least, _mm512_load_ps(panel + 64), sum[r]);
      }
    }
  }
  TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
    out[r] = sum[r];
  }
}

/// The tile of as many rows as there are.
template <class Token, int kMost>
void tile(const Rows& rows, int64_t row, int64_t count, int64_t depth, const std::byte* panel, __m512* out) {
  if constexpr (kMost > 1) {
    if (count < kMost) return tile<Token, kMost - 1>(rows, row, count, depth, panel, out);
  }
  tile_of<Token, kMost>(rows, row, depth, panel, out);
}

template <class Token>
void pack_blocks(const Token* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel) {
  for (int64_t b = 0; b < depth; ++b) {
    alignas(64) float scales[kLanes] = {};
    alignas(64) float sums[kLanes] = {};
    // A token's 32 bytes are eight numbers of a row; sixteen such rows, turned, are eight vectors of the
    // panel.
    __m512 v[16];
    for (int64_t token = 0; token < kLanes; ++token) {
      __m256i bytes = _mm256_setzero_si256();
      if (token < count) {
        const Token& block = rows[token * stride + b];
        scales[token] = from_half(block.scale);
        if constexpr (std::is_same_v<Token, Q8_1>) sums[token] = from_half(block.sum);
        bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.values));
      }
      const __m256i larger = _mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(0x80)));
      v[token] = _mm512_castsi512_ps(_mm512_zextsi256_si512(larger));
    }
    transpose(v);
    const auto put = [&](__m512 vector) {
      _mm512_store_ps(panel, vector);
      panel += 64;
    };
    put(_mm512_load_ps(scales));
    if constexpr (std::is_same_v<Token, Q8_1>) put(_mm512_load_ps(sums));
    for (int i = 0; i < 8; ++i) put(v[i]);
  }
}

template <class Weight>
void multiply_blocks(const Weight* weights, int64_t stride, int64_t count, int64_t depth,
                     const std::byte* panels, int64_t tokens, float* c, int64_t c_stride) {
  using Token = typename TokenOf<Weight>::Type;
  thread_local Rows rows;
  rows.read(weights, stride, count, depth);
  for (int64_t token = 0; token < tokens; token += kLanes, panels += panel_bytes<Token>(depth)) {
    __m512 results[16] = {};
    for (int64_t row = 0; row < count; row += kTile)
      tile<Token, kTile>(rows, row, count - row, depth, panels, results + row);
    store(results, count, tokens - token, c + token * c_stride, c_stride);
  }
}

/// Numbers of a block, plus a constant if they may be negative.
template <class Block>
__m256i unsigned_values(const Block& block) {
  const __m256i values = values_of(block);
  if constexpr (std::is_same_v<Block, Q8_0>) return _mm256_xor_si256(values, _mm256_set1_epi8(-128));
  if constexpr (std::is_same_v<Block, Q5_0>) return _mm256_add_epi8(values, _mm256_set1_epi8(16));
  return values;
}

template <class Block>
constexpr int kAdded = std::is_same_v<Block, Q8_0>   ? 128
                       : std::is_same_v<Block, Q5_0> ? 16
                                                     : 0;

/// The sums of four vectors of eight.
__m128i sums_of(const __m256i* rows) {
  const __m256i pairs =
      _mm256_hadd_epi32(_mm256_hadd_epi32(rows[0], rows[1]), _mm256_hadd_epi32(rows[2], rows[3]));
  return _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

/// Sixteen rows per vector; each term of a sum is the same as in a tile.
template <class Weight>
void multiply_one_token(const Weight* weights, int64_t stride, int64_t count, int64_t depth,
                        const typename TokenOf<Weight>::Type* token, float* c) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t b = 0; b < depth; ++b) {
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(token[b].values));
    __m256i dots[kLanes];
    alignas(32) Half scales[kLanes];
    alignas(32) Half leasts[kLanes];
    TAPLINE_UNROLL for (int64_t r = 0; r < kLanes; ++r) {
      const Weight& block = weights[std::min(r, count - 1) * stride + b];
      dots[r] = _mm256_dpbusd_epi32(_mm256_setzero_si256(), unsigned_values(block), values);
      scales[r] = block.scale;
      if constexpr (kHasLeast<Weight>) leasts[r] = block.least;
    }
    const __m256i low = _mm256_set_m128i(sums_of(dots + 4), sums_of(dots));
    const __m256i high = _mm256_set_m128i(sums_of(dots + 12), sums_of(dots + 8));
    __m512i dot = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    if constexpr (kAdded<Weight> != 0)
      dot = _mm512_sub_epi32(dot, _mm512_set1_epi32(kAdded<Weight> * Rows::sum(values)));
    const auto floats = [](const Half* from) {
      return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
    };
    const __m512 factor = _mm512_mul_ps(_mm512_set1_ps(from_half(token[b].scale)), floats(scales));
    sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), factor, sum);
    if constexpr (kHasLeast<Weight>)
      sum = _mm512_fmadd_ps(floats(leasts), _mm512_set1_ps(from_half(token[b].sum)), sum);
  }
  _mm512_mask_storeu_ps(c, static_cast<__mmask16>((1U << count) - 1U), sum);
}

}  // namespace

template <>
void pack(const Q8_0* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel) {
  pack_blocks(rows, stride, count, depth, panel);
}

template <>
void pack(const Q8_1* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel) {
  pack_blocks(rows, stride, count, depth, panel);
}

#define TAPLINE_MULTIPLY(Weight)                                                                             \
  template <>                                                                                                \
  void multiply(const Weight* weights, int64_t stride, int64_t rows, int64_t depth, const std::byte* panels, \
                int64_t tokens, float* c, int64_t c_stride) {                                                \
    multiply_blocks(weights, stride, rows, depth, panels, tokens, c, c_stride);                              \
  }                                                                                                          \
  template <>                                                                                                \
  void multiply_token(const Weight* weights, int64_t stride, int64_t rows, int64_t depth,                    \
                      const TokenOf<Weight>::Type* token, float* c) {                                        \
    multiply_one_token(weights, stride, rows, depth, token, c);                                              \
  }
TAPLINE_MULTIPLY(Q8_0)
TAPLINE_MULTIPLY(Q4_1)
TAPLINE_MULTIPLY(Q5_0)
TAPLINE_MULTIPLY(Q5_1)
#undef TAPLINE_MULTIPLY

}  // namespace tapline::products

#endif  // TAPLINE_PRODUCTS_QUANTISED
