#pragma once

// Blocks of 32 quantised numbers: their bytes, and the sums of their products with a token's bytes. Each
// instruction set has one way to multiply bytes; the sums are exact integers and the same in all.

#include <cstring>
#include <type_traits>

#include "lanes.h"

namespace tapline::products {

#ifdef TAPLINE_PRODUCTS_OF_BYTES
constexpr int kAddedToBytes = 7;
#else
constexpr int kAddedToBytes = 0;
#endif

template <class Block>
constexpr bool kHasLeast = std::is_same_v<Block, Q4_1> || std::is_same_v<Block, Q5_1>;
template <class Block>
constexpr bool kHasFifth = std::is_same_v<Block, Q5_0> || std::is_same_v<Block, Q5_1>;

/// Products multiply unsigned weights: this power of two is added to numbers that may be negative, except
/// where the products of eight bits do without.
template <class Block>
constexpr int kAddedBits = std::is_same_v<Block, Q8_0>   ? kAddedToBytes
                           : std::is_same_v<Block, Q5_0> ? 4
                                                         : 0;

inline float from_half(Half half) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

/// Sixteen in every byte whose bit is set.
inline __m256i fifth_bits(const uint8_t* bits) {
  int32_t all;
  std::memcpy(&all, bits, sizeof all);
  // Every byte gets the byte with its bit, then that bit alone.
  const __m256i places =
      _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i own = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i bytes = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(all), places), own);
  return _mm256_and_si256(_mm256_cmpeq_epi8(bytes, own), _mm256_set1_epi8(16));
}

/// A block's numbers, unsigned where a constant is added.
template <class Block>
__m256i values_of(const Block& block) {
  if constexpr (std::is_same_v<Block, Q8_0>) {
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.values));
    return kAddedToBytes == 0 ? values : _mm256_xor_si256(values, _mm256_set1_epi8(-128));
  } else {
    const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block.nibbles));
    const __m256i both = _mm256_set_m128i(_mm_srli_epi16(pairs, 4), pairs);
    const __m256i values = _mm256_and_si256(both, _mm256_set1_epi8(0x0F));
    if constexpr (kHasFifth<Block>) return _mm256_or_si256(values, fifth_bits(block.fifth));
    return values;
  }
}

/// A block's numbers, signed.
template <class Block>
__m256i signed_values_of(const Block& block) {
  if constexpr (std::is_same_v<Block, Q8_0>)
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.values));
  const __m256i values = values_of(block);
  return kAddedBits<Block> == 0
             ? values
             : _mm256_sub_epi8(values, _mm256_set1_epi8(static_cast<char>(1 << kAddedBits<Block>)));
}

/// The sum of 32 signed bytes.
inline int32_t sum_of(__m256i bytes) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  const __m256i eight = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1));
  return _mm_cvtsi128_si32(four);
}

#ifdef TAPLINE_PRODUCTS_OF_BYTES

/// The products of a block's 32 numbers, four per step, with those of a token per lane.
template <class Block>
class Dots {
 public:
  static constexpr int64_t kBytes = 32;

  explicit Dots(Ints start = all(0)) : sum_(start) {}

  static void unpack(const Block& block, int8_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), values_of(block));
  }

  void add(int step, const int8_t* weights, Ints tokens) {
    sum_ = add_products(sum_, all_fours(weights + 4 * step), tokens);
  }

  Ints sum() const { return sum_; }

 private:
  Ints sum_;
};

#else

/// The same without an instruction for four products. Sums of sixteen bits hold eight steps of four-bit
/// numbers and four of five-bit ones, but only two products of eight bits, the sign of one moved to the
/// other.
template <class Block>
class Dots {
 public:
  static constexpr bool kSigned = std::is_same_v<Block, Q8_0>;
  static constexpr int64_t kBytes = kSigned ? 64 : 32;
  static constexpr int kFit = kSigned ? 1 : kHasFifth<Block> ? 4 : 8;

  explicit Dots(Ints start = all(0)) : sum_(start) {}

  static void unpack(const Block& block, int8_t* to) {
    auto* const at = reinterpret_cast<__m256i*>(to);
    if constexpr (kSigned) {
      _mm256_storeu_si256(at, _mm256_abs_epi8(values_of(block)));
      _mm256_storeu_si256(at + 1, values_of(block));
    } else {
      _mm256_storeu_si256(at, values_of(block));
    }
  }

  void add(int step, const int8_t* weights, Ints tokens) {
    if constexpr (kSigned) tokens = with_signs_of(all_fours(weights + 32 + 4 * step), tokens);
    const Ints pairs = products_in_pairs(all_fours(weights + 4 * step), tokens);
    pairs_ = step % kFit == 0 ? pairs : add_pairs(pairs_, pairs);
    if (step % kFit == kFit - 1) sum_ = add_ints(sum_, sum_pairs(pairs_));
  }

  Ints sum() const { return sum_; }

 private:
  Ints sum_;
  Ints pairs_;
};

#endif

/// Eight sums of four products each, of a block's numbers and a token's.
template <class Block>
__m256i dots_of(const Block& block, __m256i values, __m256i start) {
#ifdef TAPLINE_PRODUCTS_OF_BYTES
  return add_products_of_eight(start, values_of(block), values);
#else
  __m256i weights = values_of(block);
  if constexpr (std::is_same_v<Block, Q8_0>) {
    values = _mm256_sign_epi8(values, weights);
    weights = _mm256_abs_epi8(weights);
  }
  const __m256i sums = _mm256_madd_epi16(_mm256_maddubs_epi16(weights, values), _mm256_set1_epi16(1));
  return std::is_same_v<Block, Q5_0> ? _mm256_add_epi32(sums, start) : sums;
#endif
}

/// What takes away the constant that is added to a block's numbers.
template <class Block>
__m256i start_of(__m256i values) {
  if constexpr (kAddedBits<Block> == 0) return _mm256_setzero_si256();
  const auto added = static_cast<char>(1 << kAddedBits<Block>);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(added), values);
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(-1));
}

}  // namespace tapline::products
