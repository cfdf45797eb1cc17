// Products of F32 weights in matrix registers. These multiply bfloat16, eight bits of a number: a number is
// the sum of three such pieces, exactly. Six of the nine products of pieces are added up in F32; the other
// three are smaller than the rounding of a product. Sums of the five small ones come first, so that they are
// not rounded to the size of the large one.

#include "amx.h"

#ifdef TAPLINE_AMX

#include "scratch.h"
#include "tile.h"

namespace tapline::products {

namespace {

constexpr int kPieces = 3;
/// Numbers of a row in a register.
constexpr int64_t kStep = 32;

int64_t steps_of(int64_t depth) {
  return (depth + kStep - 1) / kStep;
}

/// Thirty-two numbers in three pieces each. A piece is the upper half of a number's bits; the next one
/// continues with what is left, which is exact.
struct Pieces {
  Ints piece[kPieces];

  Pieces(Floats low, Floats high) {
    // The upper halves of both, in order.
    alignas(64) static constexpr uint16_t kUpper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                        23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                        45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    const Ints upper = load_ints(kUpper);
    const Floats mask = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000U)));
    TAPLINE_UNROLL for (int i = 0; i < kPieces; ++i) {
      piece[i] = _mm512_permutex2var_epi16(_mm512_castps_si512(low), upper, _mm512_castps_si512(high));
      low = _mm512_sub_ps(low, _mm512_and_ps(low, mask));
      high = _mm512_sub_ps(high, _mm512_and_ps(high, mask));
    }
  }

  /// Of a row's numbers from `at` on; zero after its end.
  static Pieces of(const float* row, int64_t at, int64_t depth) {
    const auto load_at = [&](int64_t from) {
      const int64_t count = std::clamp<int64_t>(depth - from, 0, kLanes);
      return count == 0 ? zeros() : load_first(count, row + from);
    };
    return {load_at(at), load_at(at + kLanes)};
  }
};

/// A group's rows, for every step three pieces of two registers of sixteen rows.
const std::byte* split_rows(const WeightRows<SplitF32>& weights) {
  thread_local Scratch scratch;
  const int64_t steps = steps_of(weights.depth);
  std::byte* const to = scratch.at_least(static_cast<size_t>(steps) * kPieces * 2 * kRegister);
  for (int64_t r = 0; r < kRowsTogether<SplitF32>; ++r) {
    std::byte* at = to + r / 16 * kRegister + r % 16 * 64;
    const float* const row = r < weights.rows ? &weights.row(r)->value : nullptr;
    for (int64_t s = 0; s < steps; ++s) {
      const Pieces pieces =
          row == nullptr ? Pieces(zeros(), zeros()) : Pieces::of(row, s * kStep, weights.depth);
      TAPLINE_UNROLL for (int i = 0; i < kPieces; ++i) {
        _mm512_store_si512(at, pieces.piece[i]);
        at += 2 * kRegister;
      }
    }
  }
  return to;
}

/// Adds the products of registers 4 and 5 with 6 and, of two panels, 7.
template <int kPanels>
void add_all() {
  add_halves<0, 4, 6>();
  if constexpr (kPanels == 2) add_halves<1, 4, 7>();
  add_halves<2, 5, 6>();
  if constexpr (kPanels == 2) add_halves<3, 5, 7>();
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

/// Brings a step of the next rows closer while this group is multiplied.
void fetch_next(const WeightRows<SplitF32>& weights, int64_t at) {
  if (weights.next == nullptr) return;
  for (int64_t r = 0; r < kRowsTogether<SplitF32>; ++r) {
    const auto* const line = reinterpret_cast<const char*>(weights.next + r * weights.stride + at);
    _mm_prefetch(line, _MM_HINT_T1);
    _mm_prefetch(line + 64, _MM_HINT_T1);
  }
}

/// Two registers of rows against one or two panels; the results of 16 rows with a panel are one of `out`.
template <int kPanels>
void multiply_panels(const WeightRows<SplitF32>& weights, const std::byte* rows, const std::byte* panel,
                     int64_t panel_stride, Floats (*out)[kLanes]) {
  const int64_t steps = steps_of(weights.depth);
  clear_register<0>();
  clear_register<1>();
  clear_register<2>();
  clear_register<3>();
  for (int64_t s = 0; s < steps; ++s) {
    const std::byte* const row = rows + s * kPieces * 2 * kRegister;
    const std::byte* const tokens = panel + s * kPieces * kRegister;
    fetch_next(weights, s * kStep);
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
  store_register<0>(out[0], 64);
  store_register<1>(out[1], 64);
  store_register<2>(out[2], 64);
  store_register<3>(out[3], 64);
}

}  // namespace

/// A panel has three registers for every step of a row: pairs of numbers of sixteen tokens side by side.
template <>
void pack(const SplitF32* rows, int64_t stride, int64_t count, int64_t depth, std::byte* panel) {
  for (int64_t s = 0; s < steps_of(depth); ++s) {
    Floats v[kPieces][kLanes];
    for (int64_t token = 0; token < kLanes; ++token) {
      const Pieces pieces = token < count ? Pieces::of(&rows[token * stride].value, s * kStep, depth)
                                          : Pieces(zeros(), zeros());
      for (int i = 0; i < kPieces; ++i) v[i][token] = _mm512_castsi512_ps(pieces.piece[i]);
    }
    for (auto& piece : v) {
      transpose(piece);
      for (const Floats& pairs : piece) {
        _mm512_store_ps(panel, pairs);
        panel += 64;
      }
    }
  }
}

template <>
void multiply(const WeightRows<SplitF32>& weights, const std::byte* panels, int64_t tokens, float* c,
              int64_t c_stride) {
  WeightRows<SplitF32> group = weights;
  const std::byte* const rows = split_rows(group);
  const auto panel_stride = static_cast<int64_t>(panel_bytes<SplitF32>(group.depth));
  const MatrixRegisters registers;
  Floats results[4][kLanes];
  for (int64_t token = 0; token < tokens; token += 2 * kLanes, panels += 2 * panel_stride) {
    const int64_t left = tokens - token;
    if (left > kLanes) {
      multiply_panels<2>(group, rows, panels, panel_stride, results);
    } else {
      multiply_panels<1>(group, rows, panels, panel_stride, results);
    }
    group.next = nullptr;  // has been fetched
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t rows_left = group.rows - i / 2 * kLanes;
      const int64_t tokens_left = left - i % 2 * kLanes;
      if (rows_left <= 0 || tokens_left <= 0) continue;
      store(results[i], std::min(rows_left, kLanes), tokens_left,
            c + (token + i % 2 * kLanes) * c_stride + i / 2 * kLanes, c_stride);
    }
  }
}

}  // namespace tapline::products

#endif  // TAPLINE_AMX
