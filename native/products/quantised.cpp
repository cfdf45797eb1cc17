// Products of weights in blocks of 32, four to eight bits each, with tokens rounded to eight.

#include "products.h"

#ifdef TAPLINE_PRODUCTS

#include <algorithm>
#include <type_traits>

#include "blocks.h"
#include "byte_tiles.h"
#include "scratch.h"
#include "tile.h"

namespace tapline::products {

namespace {

// The sizes of tiles whose sums fit the registers. With several panels, a number of the weights is loaded
// once for all of them.
#if TAPLINE_PRODUCTS == 16 && defined(TAPLINE_PRODUCTS_OF_BYTES)
constexpr int kTile = 8;
constexpr int kPanels = 1;
#elif defined(TAPLINE_PRODUCTS_OF_BYTES)
constexpr int kTile = 8;
constexpr int kPanels = 2;
#else
constexpr int kTile = 4;
constexpr int kPanels = 2;
#endif
/// Rows of a tile with several panels.
constexpr int kWideTile = 4;

/// A vector's rows of weights, unpacked for tiles.
struct Rows {
  const int8_t* values;
  const float* scale;
  const float* least;  // of blocks that have it
};

template <class Block>
Rows rows_for_tiles(const WeightRows<Block>& weights) {
  constexpr int64_t kBytes = Dots<Block>::kBytes;
  thread_local Scratch memory;
  const int64_t depth = weights.depth;
  const int64_t numbers = kLanes * depth;
  // Found once: in a shared library, a thread's own variable costs a call wherever it is used.
  auto* const values =
      reinterpret_cast<int8_t*>(memory.at_least(static_cast<size_t>(numbers) * (kBytes + 2 * sizeof(float))));
  auto* const scale = reinterpret_cast<float*>(values + numbers * kBytes);
  float* const least = scale + numbers;
  for (int64_t r = 0; r < weights.rows; ++r) {
    const Block* const row = weights.row(r);
    for (int64_t b = 0; b < depth; ++b) {
      const int64_t at = r * depth + b;
      scale[at] = from_half(row[b].scale);
      if constexpr (kHasLeast<Block>) least[at] = from_half(row[b].least);
      Dots<Block>::unpack(row[b], values + at * kBytes);
    }
  }
  return {values, scale, least};
}

/// kRows rows of weights, from `row` on, against kCount panels; results of row r go to out[panel][row + r].
template <class Weight, int kRows, int kCount>
void tile_of(const Rows& rows, int64_t row, int64_t depth, const std::byte* panel, int64_t panel_stride,
             Fetch& fetch, Floats (*out)[kLanes]) {
  constexpr int64_t kBytes = Dots<Weight>::kBytes;
  const int8_t* values = rows.values + row * depth * kBytes;
  const float* scale = rows.scale + row * depth;
  const float* least = rows.least + row * depth;
  Floats sum[kCount][kRows];
  TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
    TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
      sum[p][r] = zeros();
    }
  }
  for (int64_t b = 0; b < depth; ++b) {
    fetch.turn();
    Dots<Weight> dots[kCount][kRows];
    TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
      Ints start = all(0);
      if constexpr (kAddedBits<Weight> != 0)
        start = shift<kAddedBits<Weight>>(load_ints(panel + p * panel_stride + kVector));
      TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
        dots[p][r] = Dots<Weight>(start);
      }
    }
    TAPLINE_UNROLL for (int i = 0; i < 8; ++i) {
      TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
        const Ints tokens = load_ints(panel + p * panel_stride + (2 + i) * kVector);
        TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
          dots[p][r].add(i, values + r * depth * kBytes, tokens);
        }
      }
    }
    TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
      const Floats scales = load(panel + p * panel_stride);
      TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
        sum[p][r] = fmadd(to_floats(dots[p][r].sum()), mul(scales, all(scale[r * depth])), sum[p][r]);
        if constexpr (kHasLeast<Weight>)
          sum[p][r] = fmadd(all(least[r * depth]), load(panel + p * panel_stride + kVector), sum[p][r]);
      }
    }
    values += kBytes;
    ++scale;
    ++least;
    panel += panel_bytes<typename TokenOf<Weight>::Type>(1);
  }
  TAPLINE_UNROLL for (int p = 0; p < kCount; ++p) {
    TAPLINE_UNROLL for (int r = 0; r < kRows; ++r) {
      out[p][row + r] = sum[p][r];
    }
  }
}

/// The tile of as many rows as there are.
template <class Weight, int kMost>
void tile(const Rows& rows, int64_t row, int64_t count, int64_t depth, const std::byte* panel, Fetch& fetch,
          Floats (*out)[kLanes]) {
  if constexpr (kMost > 1) {
    if (count < kMost) return tile<Weight, kMost - 1>(rows, row, count, depth, panel, fetch, out);
  }
  tile_of<Weight, kMost, 1>(rows, row, depth, panel, 0, fetch, out);
}

template <class Token>
void pack_blocks(const Token* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel) {
  for (int64_t b = 0; b < depth; ++b) {
    if (b % 2 == 0) fetch_tokens(rows, stride, depth, b, 8);
    alignas(64) float scales[kLanes] = {};
    alignas(64) float sums[kLanes] = {};
    alignas(64) int32_t negative_sums[kLanes] = {};
    // A token's 32 bytes are eight numbers of a row; the rows, turned, are eight vectors of the panel.
    Floats v[kLanes];
    for (int64_t token = 0; token < kLanes; ++token) {
      __m256i bytes = _mm256_setzero_si256();
      if (token < count) {
        const Token& block = rows[token * stride + b];
        bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.values));
        scales[token] = from_half(block.scale);
        if constexpr (std::is_same_v<Token, Q8_1>) {
          sums[token] = from_half(block.sum);
        } else {
          negative_sums[token] = -sum_of(bytes);
        }
      }
      v[token] = from_eight(bytes);
    }
    transpose(v);
    const auto put = [&](Floats vector) {
      store(reinterpret_cast<float*>(panel), vector);
      panel += kVector;
    };
    put(load(scales));
    put(std::is_same_v<Token, Q8_1> ? load(sums) : load(negative_sums));
    for (int i = 0; i < 8; ++i) put(v[i]);
  }
}

#ifdef TAPLINE_BYTE_TILES

/// Sixteen rows of weights, unpacked for tiles of bytes.
template <class Block>
TileRows rows_for_byte_tiles(const WeightRows<Block>& weights) {
  thread_local Scratch memory;
  const int64_t depth = weights.depth;
  const auto numbers = static_cast<size_t>(kLanes * depth);
  auto* const values = reinterpret_cast<int8_t*>(memory.at_least(numbers * (kTileRow + 2 * sizeof(float))));
  auto* const scale = reinterpret_cast<float*>(values + numbers * kTileRow);
  float* const least = kHasLeast<Block> ? scale + numbers : nullptr;
  for (int64_t r = 0; r < kLanes; ++r) {
    const Block* const row = weights.row(r);
    for (int64_t b = 0; b < depth; ++b) {
      const int64_t at = b * kLanes + r;
      scale[at] = from_half(row[b].scale);
      if constexpr (kHasLeast<Block>) least[at] = from_half(row[b].least);
      _mm256_store_si256(reinterpret_cast<__m256i*>(values + at * kTileRow), signed_values_of(row[b]));
    }
  }
  return {values, scale, least, depth};
}

#endif

/// The blocks of all tiles, for as many turns of fetching.
int64_t turns_of_tiles(int64_t rows, int64_t depth, int64_t tokens) {
  const int64_t panels = (tokens + kLanes - 1) / kLanes;
  const int64_t wide = kPanels > 1 && rows == kLanes ? panels / kPanels : 0;
  const int64_t tiles =
      wide * (kLanes / kWideTile) + (panels - wide * kPanels) * ((rows + kTile - 1) / kTile);
  return tiles * depth;
}

template <class Weight>
void multiply_blocks(const WeightRows<Weight>& weights, const std::byte* panels, int64_t tokens, float* c,
                     int64_t c_stride) {
#ifdef TAPLINE_BYTE_TILES
  if (weights.rows == kLanes && has_amx())
    return multiply_byte_tiles(rows_for_byte_tiles(weights), panels, tokens,
                               Fetch(weights, turns_of_byte_tiles(weights.depth, tokens)), c, c_stride);
#endif
  const Rows rows = rows_for_tiles(weights);
  const int64_t count = weights.rows;
  const int64_t depth = weights.depth;
  const auto bytes = static_cast<int64_t>(panel_bytes<typename TokenOf<Weight>::Type>(depth));
  Fetch fetch(weights, turns_of_tiles(count, depth, tokens));
  Floats results[kPanels][kLanes] = {};
  int64_t token = 0;
  if (kPanels > 1 && count == kLanes) {
    for (; token + (kPanels - 1) * kLanes < tokens; token += kPanels * kLanes, panels += kPanels * bytes) {
      for (int64_t row = 0; row < kLanes; row += kWideTile)
        tile_of<Weight, kWideTile, kPanels>(rows, row, depth, panels, bytes, fetch, results);
      for (int64_t p = 0; p < kPanels; ++p) {
        const int64_t first = token + p * kLanes;
        store(results[p], count, tokens - first, c + first * c_stride, c_stride);
      }
    }
  }
  for (; token < tokens; token += kLanes, panels += bytes) {
    for (int64_t row = 0; row < count; row += kTile)
      tile<Weight, kTile>(rows, row, count - row, depth, panels, fetch, results);
    store(results[0], count, tokens - token, c + token * c_stride, c_stride);
  }
}

/// The sums of four vectors of eight.
__m128i sums_of(const __m256i* rows) {
  const __m256i pairs =
      _mm256_hadd_epi32(_mm256_hadd_epi32(rows[0], rows[1]), _mm256_hadd_epi32(rows[2], rows[3]));
  return _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

/// A row per lane; each term of a sum is the same as in a tile.
template <class Weight, int kCount>
void multiply_tokens(const WeightRows<Weight>& weights, const typename TokenOf<Weight>::Type* tokens,
                     int64_t tokens_stride, float* c, int64_t c_stride) {
  Floats sum[kCount];
  TAPLINE_UNROLL for (int t = 0; t < kCount; ++t) {
    sum[t] = zeros();
  }
  Fetch fetch(weights, weights.depth);
  for (int64_t b = 0; b < weights.depth; ++b) {
    fetch.turn();
    __m256i values[kCount];
    __m256i starts[kCount];
    TAPLINE_UNROLL for (int t = 0; t < kCount; ++t) {
      const auto* const own = tokens[t * tokens_stride + b].values;
      values[t] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(own));
      starts[t] = start_of<Weight>(values[t]);
    }
    alignas(32) Half scales[kLanes];
    alignas(32) Half leasts[kLanes];
    __m128i fours[kCount][kLanes / 4];
    TAPLINE_UNROLL for (int64_t i = 0; i < kLanes / 4; ++i) {
      __m256i dots[kCount][4];
      TAPLINE_UNROLL for (int64_t j = 0; j < 4; ++j) {
        const int64_t r = 4 * i + j;
        const Weight& block = weights.row(std::min(r, weights.rows - 1))[b];
        TAPLINE_UNROLL for (int t = 0; t < kCount; ++t) {
          dots[t][j] = dots_of(block, values[t], starts[t]);
        }
        scales[r] = block.scale;
        if constexpr (kHasLeast<Weight>) leasts[r] = block.least;
      }
      TAPLINE_UNROLL for (int t = 0; t < kCount; ++t) {
        fours[t][i] = sums_of(dots[t]);
      }
    }
    TAPLINE_UNROLL for (int t = 0; t < kCount; ++t) {
      const auto& token = tokens[t * tokens_stride + b];
      const Floats factor = mul(all(from_half(token.scale)), from_halves(scales));
      sum[t] = fmadd(to_floats(from_fours(fours[t])), factor, sum[t]);
      if constexpr (kHasLeast<Weight>) sum[t] = fmadd(from_halves(leasts), all(from_half(token.sum)), sum[t]);
    }
  }
  TAPLINE_UNROLL for (int t = 0; t < kCount; ++t) {
    store_first(weights.rows, c + t * c_stride, sum[t]);
  }
}

template <class Weight, int kCount>
void multiply_few_tokens(const WeightRows<Weight>& weights, const typename TokenOf<Weight>::Type* tokens,
                         int64_t tokens_stride, int64_t count, float* c, int64_t c_stride) {
  if constexpr (kCount > 1) {
    if (count < kCount)
      return multiply_few_tokens<Weight, kCount - 1>(weights, tokens, tokens_stride, count, c, c_stride);
  }
  multiply_tokens<Weight, kCount>(weights, tokens, tokens_stride, c, c_stride);
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

#define TAPLINE_MULTIPLY(Weight)                                                                      \
  template <>                                                                                         \
  void multiply(const WeightRows<Weight>& weights, const std::byte* panels, int64_t tokens, float* c, \
                int64_t c_stride) {                                                                   \
    multiply_blocks(weights, panels, tokens, c, c_stride);                                            \
  }                                                                                                   \
  template <>                                                                                         \
  void multiply_few(const WeightRows<Weight>& weights, const TokenOf<Weight>::Type* tokens,           \
                    int64_t tokens_stride, int64_t count, float* c, int64_t c_stride) {               \
    multiply_few_tokens<Weight, kFewTokens>(weights, tokens, tokens_stride, count, c, c_stride);      \
  }
TAPLINE_MULTIPLY(Q8_0)
TAPLINE_MULTIPLY(Q4_1)
TAPLINE_MULTIPLY(Q5_0)
TAPLINE_MULTIPLY(Q5_1)
#undef TAPLINE_MULTIPLY

}  // namespace tapline::products

#endif  // TAPLINE_PRODUCTS
