#pragma once

// Matrix products of prompts that replace ggml's on processors with AVX-512: C = A B', A the weights, B the
// tokens' rows. Compiled into ggml's library with its flags.
//
// The tokens are packed once, sixteen per vector; one number (or four bytes) of a row of weights is
// multiplied with sixteen tokens at a time. A sum has one order, whatever else is in the batch: a row's
// result does not depend on other rows, on the number of threads, or on their timing. Quantised weights are
// multiplied with tokens that ggml has rounded to eight bits, block by block in integers, as in ggml's
// products.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define TAPLINE_PRODUCTS 1
#if defined(__AVX512VNNI__)
#define TAPLINE_PRODUCTS_QUANTISED 1
#endif
#endif

namespace tapline::products {

/// Tokens side by side in a vector, and rows of weights in a tile.
constexpr int64_t kLanes = 16;

/// A number of ggml's in half precision.
using Half = uint16_t;

// Blocks of 32 numbers in ggml's layout (checked in native/assumptions.cpp). A number is scale * value, plus
// `least` in blocks that have it; the fifth bits of sixteen and sixteen numbers are separate.
struct Q8_0 {
  Half scale;
  int8_t values[32];
};
struct Q4_1 {
  Half scale;
  Half least;
  uint8_t nibbles[16];
};
struct Q5_0 {
  Half scale;
  uint8_t fifth[4];
  uint8_t nibbles[16];
};
struct Q5_1 {
  Half scale;
  Half least;
  uint8_t fifth[4];
  uint8_t nibbles[16];
};
/// Tokens for weights with `least`: `sum` is that of the values, times the scale.
struct Q8_1 {
  Half scale;
  Half sum;
  int8_t values[32];
};

/// A block of 256 numbers of eight rows in ggml's layout. Each group of 32 numbers has twelve bytes with the
/// rows' scales and minima in six bits each; each 64 numbers have four times eight bytes of each row, the
/// first 32 in the low halves of the bytes.
struct Q4Kx8 {
  Half scale[8];
  Half least[8];
  uint8_t groups[8][12];
  uint8_t nibbles[4][4][64];
};

/// A token's block of 256 numbers, and the sums of sixteen each.
struct Q8K {
  float scale;
  int8_t values[256];
  int16_t sums[16];
};

/// The type of tokens for a type of weights.
template <class Weight>
struct TokenOf {
  using Type = Q8_0;
};
template <>
struct TokenOf<float> {
  using Type = float;
};
template <>
struct TokenOf<Q4_1> {
  using Type = Q8_1;
};
template <>
struct TokenOf<Q5_1> {
  using Type = Q8_1;
};

/// Bytes of a panel of sixteen tokens; `depth` counts numbers of F32 and blocks of quantised ones. F32 is at
/// panel[k * 16 + token]. A block has sixteen scales, sixteen sums in Q8_1, and eight vectors of four bytes
/// per token, each byte plus 128.
template <class Token>
size_t panel_bytes(int64_t depth) {
  constexpr size_t kVectors = std::is_same_v<Token, float> ? 1 : std::is_same_v<Token, Q8_0> ? 9 : 10;
  return static_cast<size_t>(depth) * 64 * kVectors;
}

/// Packs `count` tokens, at most sixteen; the rest is zero.
template <class Token>
void pack(const Token* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel);

/// Results of `rows` (1 to 16) rows of weights with the tokens of all panels: c[token * c_stride + row].
template <class Weight>
void multiply(const Weight* weights, int64_t stride, int64_t rows, int64_t depth, const std::byte* panels,
              int64_t tokens, float* c, int64_t c_stride);

/// The same for one token and `rows` (1 to 16) rows of weights, with the same bits as in a batch.
template <class Weight>
void multiply_token(const Weight* weights, int64_t stride, int64_t rows, int64_t depth,
                    const typename TokenOf<Weight>::Type* token, float* c);

}  // namespace tapline::products
