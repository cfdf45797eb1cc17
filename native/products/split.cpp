// Products of F32 weights in matrix registers. These multiply bfloat16, eight bits of a number: a number is
// the sum of three such pieces, exactly. Six of the nine products of pieces are added up in F32; the other
// three are smaller than the rounding of a product. Sums of the five small ones come first, so that they are
// not rounded to the size of the large one.

#include "amx.h"

#ifdef TAPLINE_AMX

#include <algorithm>

#include "lanes.h"

namespace tapline::products {

namespace {

constexpr int kPieces = 3;
/// Numbers of a row in a register.
constexpr int64_t kStep = 32;

/// Registers 0 to 3 are sums of 16 by 16 numbers, a row a token; of the operands, 4 and 5 have weights, 6 and
/// 7 tokens.
constexpr RegisterForms kForms = {{16, 16, 16, 16, 16, 16, 16, 16}, {64, 64, 64, 64, 64, 64, 64, 64}};

int64_t steps_of(int64_t depth) {
  return (depth + kStep - 1) / kStep;
}

/// Twice sixteen numbers in three pieces each; a register multiplies them in pairs, one of each sixteen. A
/// piece is the upper half of a number's bits; the next one continues with what is left, which is exact.
struct Pieces {
  Ints piece[kPieces];

  Pieces(Floats low, Floats high) {
    const Floats mask = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000U)));
    TAPLINE_UNROLL for (int i = 0; i < kPieces; ++i) {
      const Floats upper = _mm512_and_ps(high, mask);
      piece[i] = _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(low), 16), _mm512_castps_si512(upper));
      low = _mm512_sub_ps(low, _mm512_and_ps(low, mask));
      high = _mm512_sub_ps(high, upper);
    }
  }

  /// A piece each to registers that lie `apart` bytes from each other.
  void store(std::byte* to, int64_t apart) const {
    TAPLINE_UNROLL for (int i = 0; i < kPieces; ++i) {
      _mm512_store_si512(to + i * apart, piece[i]);
    }
  }
};

/// A row's sixteen numbers from `at` on; zero after its end.
Floats load_at(const float* row, int64_t at, int64_t depth) {
  const int64_t count = std::clamp<int64_t>(depth - at, 0, kLanes);
  return count == 0 ? zeros() : load_first(count, row + at);
}

/// Adds the products of registers 4 and 5 with 6 and, of two panels, 7.
template <int kPanels>
void add_all() {
  add_halves<0, 6, 4>();
  if constexpr (kPanels == 2) add_halves<1, 7, 4>();
  add_halves<2, 6, 5>();
  if constexpr (kPanels == 2) add_halves<3, 7, 5>();
}

template <int kPanels>
void load_tokens(const std::byte* panel, int64_t panel_stride) {
  load_register<6>(panel, 64);
  if constexpr (kPanels == 2) load_register<7>(panel + panel_stride, 64);
}

void load_weights(const std::byte* rows) {
  load_register<4>(rows, 64);
  load_register<5>(rows + kRegister, 64);
}

/// Where a product's results go: c[token * stride + row].
struct Results {
  float* c;
  int64_t stride;
  int64_t rows;
  int64_t tokens;

  /// Those of a register, from a row and a token on; there may be fewer than it holds, or none.
  template <int kSum>
  void store(int64_t row, int64_t token) const {
    const int64_t rows_left = std::min(kLanes, rows - row);
    const int64_t tokens_left = std::min(kLanes, tokens - token);
    if (rows_left <= 0 || tokens_left <= 0) return;
    float* const to = c + token * stride + row;
    if (rows_left == kLanes && tokens_left == kLanes)
      return store_register<kSum>(to, stride * static_cast<int64_t>(sizeof(float)));
    Floats whole[kLanes];
    store_register<kSum>(whole, kLanes * sizeof(float));
    for (int64_t i = 0; i < tokens_left; ++i) store_first(rows_left, to + i * stride, whole[i]);
  }
};

/// Two registers of rows against one or two panels.
template <int kPanels>
void multiply_panels(const WeightRows<SplitF32>& weights, const std::byte* panel, int64_t panel_stride,
                     Fetch& fetch, const Results& results) {
  const std::byte* const rows = weights.split;
  const int64_t steps = steps_of(weights.depth);
  clear_register<0>();
  clear_register<1>();
  clear_register<2>();
  clear_register<3>();
  for (int64_t s = 0; s < steps; ++s) {
    const std::byte* const row = rows + s * kPieces * 2 * kRegister;
    const std::byte* const tokens = panel + s * kPieces * kRegister;
    fetch.turn();
    // First with third, first with second, second with second, second with first, third with first.
    load_weights(row);
    load_tokens<kPanels>(tokens + 2 * kRegister, panel_stride);
    add_all<kPanels>();
    load_tokens<kPanels>(tokens + kRegister, panel_stride);
    add_all<kPanels>();
    load_weights(row + 2 * kRegister);
    add_all<kPanels>();
    load_tokens<kPanels>(tokens, panel_stride);
    add_all<kPanels>();
    load_weights(row + 4 * kRegister);
    add_all<kPanels>();
  }
  for (int64_t s = 0; s < steps; ++s) {
    load_weights(rows + s * kPieces * 2 * kRegister);
    load_tokens<kPanels>(panel + s * kPieces * kRegister, panel_stride);
    add_all<kPanels>();
  }
  results.store<0>(0, 0);
  results.store<1>(0, kLanes);
  results.store<2>(kLanes, 0);
  results.store<3>(kLanes, kLanes);
}

}  // namespace

/// For every step three registers of sixteen rows and three of the others: pairs of numbers side by side.
void split_rows(const WeightRows<SplitF32>& weights, std::byte* to) {
  constexpr int64_t kRows = kRowsTogether<SplitF32>;
  for (int64_t s = 0; s < steps_of(weights.depth); ++s, to += kPieces * 2 * kRegister) {
    for (int64_t first = 0; first < kRows; first += kLanes) {
      Floats halves[2][kLanes];
      for (int64_t half = 0; half < 2; ++half) {
        for (int64_t r = 0; r < kLanes; ++r) {
          const bool is = first + r < weights.rows;
          halves[half][r] =
              is ? load_at(&weights.row(first + r)->value, s * kStep + half * kLanes, weights.depth)
                 : zeros();
        }
        transpose(halves[half]);
      }
      for (int64_t pair = 0; pair < kLanes; ++pair) {
        Pieces(halves[0][pair], halves[1][pair])
            .store(to + first / kLanes * kRegister + pair * 64, 2 * kRegister);
      }
    }
  }
}

/// A panel has three registers for every step of a row, a row a token.
template <>
void pack(const SplitF32* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel) {
  for (int64_t s = 0; s < steps_of(depth); ++s, panel += kPieces * kRegister) {
    fetch_tokens(rows, stride, depth, s * kStep, 4 * kStep);
    for (int64_t token = 0; token < kLanes; ++token) {
      const float* const row = &rows[token * stride].value;
      const auto numbers = [&](int64_t at) {
        return token < count ? load_at(row, s * kStep + at, depth) : zeros();
      };
      Pieces(numbers(0), numbers(kLanes)).store(panel + token * 64, kRegister);
    }
  }
}

template <>
void multiply(const WeightRows<SplitF32>& weights, const std::byte* panels, int64_t tokens, float* c,
              int64_t c_stride) {
  Fetch fetch(weights, (tokens + 2 * kLanes - 1) / (2 * kLanes) * steps_of(weights.depth));
  const auto panel_stride = static_cast<int64_t>(panel_bytes<SplitF32>(weights.depth));
  const MatrixRegisters registers(kForms);
  for (int64_t token = 0; token < tokens; token += 2 * kLanes, panels += 2 * panel_stride) {
    const Results results{c + token * c_stride, c_stride, weights.rows, tokens - token};
    if (tokens - token > kLanes) {
      multiply_panels<2>(weights, panels, panel_stride, fetch, results);
    } else {
      multiply_panels<1>(weights, panels, panel_stride, fetch, results);
    }
  }
}

}  // namespace tapline::products

#endif  // TAPLINE_AMX
