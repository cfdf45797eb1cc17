#pragma once

// Matrix products that replace ggml's on processors with AVX-512 or AVX2: C = A B', A the weights, B the
// tokens' rows. Compiled into ggml's library with its flags.
//
// Tokens are packed once, sixteen per vector (eight with AVX2); one number (or four bytes) of a row of
// weights is multiplied with a vector of tokens at a time. A sum has one order, whatever else is in the
// batch: a row's result does not depend on other rows, on the number of threads, on their timing, or on the
// vectors' width. Quantised weights are multiplied with tokens that ggml has rounded to eight bits, block by
// block in integers, as in ggml's products.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define TAPLINE_PRODUCTS 16
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define TAPLINE_PRODUCTS 8
#endif
// Lanes of a product of one token with F16 weights.
#ifdef TAPLINE_PRODUCTS
#define TAPLINE_ALONE TAPLINE_PRODUCTS
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define TAPLINE_ALONE 4
#include <arm_neon.h>
#endif

namespace tapline::products {

#ifdef TAPLINE_PRODUCTS
/// Tokens side by side in a vector, and rows of weights that are multiplied together.
constexpr int64_t kLanes = TAPLINE_PRODUCTS;
#endif

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

/// F32 that matrix registers multiply (split.cpp), of weights and tokens.
struct SplitF32 {
  float value;
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
struct TokenOf<SplitF32> {
  using Type = SplitF32;
};
template <>
struct TokenOf<Q4_1> {
  using Type = Q8_1;
};
template <>
struct TokenOf<Q5_1> {
  using Type = Q8_1;
};

template <class Weight>
constexpr bool kQuantised = !std::is_same_v<Weight, float> && !std::is_same_v<Weight, SplitF32>;

#ifdef TAPLINE_PRODUCTS

/// Rows of weights that a thread takes together.
template <class Weight>
constexpr int64_t kRowsTogether = std::is_same_v<Weight, SplitF32> ? 2 * kLanes : kLanes;

/// Bytes of a panel of kLanes tokens; `depth` counts numbers of F32 and blocks of quantised ones. F32 is at
/// panel[k * kLanes + token]. A block has ten vectors: scales; in Q8_1 `sum`, in Q8_0 the negative sum of the
/// values as an integer; and eight times four bytes per token. Split F32 has three times two bytes per
/// number, of whole 32 numbers.
template <class Token>
size_t panel_bytes(int64_t depth) {
  if constexpr (std::is_same_v<Token, SplitF32>)
    return static_cast<size_t>((depth + 31) / 32 * 32 * kLanes) * 6;
  constexpr size_t kVectors = std::is_same_v<Token, float> ? 1 : 10;
  return static_cast<size_t>(depth * kLanes) * 4 * kVectors;
}

/// Brings what a panel's rows have some steps later closer, or at their end what the next panel's have:
/// another core has often written them.
template <class Token>
void fetch_tokens(const Token* rows, int64_t stride, int64_t depth, int64_t at, int64_t ahead) {
  at += ahead;
  if (at >= depth) {
    at -= depth;
    rows += kLanes * stride;
  }
  for (int64_t token = 0; token < kLanes; ++token) {
    const auto* const from = reinterpret_cast<const char*>(rows + token * stride + at);
    _mm_prefetch(from, _MM_HINT_T0);
    _mm_prefetch(from + 64, _MM_HINT_T0);
  }
}

/// Packs `count` tokens, at most kLanes; the rest is zero.
template <class Token>
void pack(const Token* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel);

/// Rows of weights, at most kRowsTogether, and where the rows are that this thread multiplies next.
template <class Weight>
struct WeightRows {
  const Weight* first;
  int64_t stride;
  int64_t rows;
  int64_t depth;
  const Weight* next;                         // or null
  int64_t next_rows = kRowsTogether<Weight>;  // to be fetched of these
  const std::byte* split = nullptr;           // of SplitF32: what split_rows made of the rows

  const Weight* row(int64_t r) const { return first + r * stride; }
};

/// Brings the next rows into the cache bit by bit, in as many turns as a product has: rows are too short for
/// the processor to see where they continue, and it waits if it is asked for more lines of memory at once
/// than it can fetch.
class Fetch {
 public:
  template <class Weight>
  Fetch(const WeightRows<Weight>& weights, int64_t turns)
      : at_(reinterpret_cast<const char*>(weights.next)),
        left_(weights.next == nullptr ? 0 : lines_of(weights.next_rows * weights.stride * sizeof(Weight))),
        each_((left_ + turns - 1) / turns) {}

  void turn() {
    for (int64_t i = 0; i < each_ && left_ > 0; ++i, --left_, at_ += kLine) _mm_prefetch(at_, _MM_HINT_T1);
  }

 private:
  static constexpr int64_t kLine = 64;
  static int64_t lines_of(size_t bytes) { return static_cast<int64_t>(bytes) / kLine; }

  const char* at_;
  int64_t left_;
  int64_t each_;
};

/// Bytes of a group's rows in three pieces.
inline size_t split_bytes(int64_t depth) {
  return 2 * panel_bytes<SplitF32>(depth);
}

/// Splits a group's rows, for every step three pieces of two registers of sixteen rows.
void split_rows(const WeightRows<SplitF32>& weights, std::byte* to);

/// Results with the tokens of all panels: c[token * c_stride + row].
template <class Weight>
void multiply(const WeightRows<Weight>& weights, const std::byte* panels, int64_t tokens, float* c,
              int64_t c_stride);

/// Up to this number of tokens, quantised weights are read once, without packing.
constexpr int64_t kFewTokens = 4;

/// The same for 1 to kFewTokens tokens, with the same bits as in a batch.
template <class Weight>
void multiply_few(const WeightRows<Weight>& weights, const typename TokenOf<Weight>::Type* tokens,
                  int64_t tokens_stride, int64_t count, float* c, int64_t c_stride);

#endif

#ifdef TAPLINE_ALONE

/// What ggml multiplies F16 weights with.
#ifdef TAPLINE_PRODUCTS
using AloneToken = Half;
#else
using AloneToken = float;
#endif

/// One token times F16 weights, with the bits of ggml's product of several tokens; `depth` is a multiple of
/// TAPLINE_ALONE.
void multiply_alone(const Half* weights, int64_t stride, int64_t rows, int64_t depth, const AloneToken* token,
                    float* c);

#endif

}  // namespace tapline::products
