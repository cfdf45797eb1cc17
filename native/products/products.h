#pragma once

// Matrix products of prompts, in place of ggml's where a processor has AVX-512: C = A B', A the weights, B
// the tokens' rows. Compiled into ggml's own library with the flags that it gets there.
//
// The tokens are laid out once with sixteen of them side by side in a vector; of the weights, one number (or
// four bytes) of a row meets sixteen tokens at a time. A sum is added up in one order, whatever else is in
// the batch: a row's result does not depend on its neighbours, on the number of threads, or on their timing.
// Quantised weights meet tokens that ggml has rounded to eight bits, block by block in integers, as in its
// own products.

#include <cstddef>
#include <cstdint>

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

// Blocks of 32 numbers as ggml stores them (native/assumptions.cpp compares). A number is scale * value, in
// those with a least one that plus the least; the fifth bits of sixteen and sixteen numbers stand apart.
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
/// What meets weights with a least number: `sum` is that of the values, times the scale.
struct Q8_1 {
  Half scale;
  Half sum;
  int8_t values[32];
};

/// Eight rows' block of 256 numbers, as ggml packs it. Of each group of 32 numbers come twelve bytes with the
/// rows' scales and minima in six bits each; of 64 numbers come four times eight bytes of each row, the first
/// 32 in the low halves of the bytes.
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

/// What tokens are for weights of a type.
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

/// Bytes of a panel of sixteen tokens; `depth` counts numbers of F32 and blocks of quantised ones. F32 lies
/// as panel[k * 16 + token]. Of a block come sixteen scales, sixteen sums where there are some, and eight
/// vectors of four bytes a token, each byte 128 larger.
template <class Token>
size_t panel_bytes(int64_t depth);
template <>
inline size_t panel_bytes<float>(int64_t depth) {
  return static_cast<size_t>(depth) * 64;
}
template <>
inline size_t panel_bytes<Q8_0>(int64_t depth) {
  return static_cast<size_t>(depth) * 64 * 9;
}
template <>
inline size_t panel_bytes<Q8_1>(int64_t depth) {
  return static_cast<size_t>(depth) * 64 * 10;
}

/// Lays out `count` tokens, sixteen at most; those behind the last one are zero.
template <class Token>
void pack(const Token* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel);

/// Results of `rows` (1 to 16) rows of weights with the tokens of all panels: c[token * c_stride + row].
template <class Weight>
void multiply(const Weight* weights, int64_t stride, int64_t rows, int64_t depth, const std::byte* panels,
              int64_t tokens, float* c, int64_t c_stride);

/// The same of one token, by `rows` (1 to 16) rows of weights: the bits that it has among others.
template <class Weight>
void multiply_token(const Weight* weights, int64_t stride, int64_t rows, int64_t depth,
                    const typename TokenOf<Weight>::Type* token, float* c);

}  // namespace tapline::products
