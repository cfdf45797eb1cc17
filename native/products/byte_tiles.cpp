// The method is that of Intel's optimisation manual, "Intel AMX": rows of one operand are K bytes long, the
// other has four bytes of each column side by side, which is how panels of tokens are packed. A block has its
// own scale, so K is 32, half of what a tile holds.

#include "byte_tiles.h"

#ifdef TAPLINE_BYTE_TILES

#include "tile.h"

namespace tapline::products {

namespace {

/// Registers 0 and 1 are sums, 2 and 3 have weights, 4 and 5 tokens.
constexpr RegisterForms kForms = {{16, 16, 16, 16, 8, 8}, {64, 64, 32, 32, 64, 64}};

/// Vectors of a panel before a block's numbers: scales, and sums.
constexpr int64_t kBeforeValues = 2;
constexpr int64_t kPanelBlock = 10 * kVector;
constexpr int64_t kSums = kLanes * kLanes;

/// The sums of a block's products; two blocks in a row use different registers (kSecond).
template <int kSecond>
void multiply_block(const int8_t* values, const std::byte* panel, int32_t* dots) {
  clear_register<kSecond>();
  load_register<2 + kSecond>(values, kTileRow);
  load_register<4 + kSecond>(panel + kBeforeValues * kVector, kVector);
  add_bytes<kSecond, 2 + kSecond, 4 + kSecond>();
  store_register<kSecond>(dots, kVector);
}

/// Adds a block's sums of products, scaled; a vector has a row's sums with all tokens.
template <bool kLeast>
inline void add_block(const int32_t* dots, const TileRows& rows, int64_t block, const std::byte* panel,
                      Floats* sum) {
  const float* const scale = rows.scale + block * kLanes;
  const Floats scales = load(panel + block * kPanelBlock);
  TAPLINE_UNROLL for (int64_t r = 0; r < kLanes; ++r) {
    sum[r] = fmadd(to_floats(load_ints(dots + r * kLanes)), mul(scales, all(scale[r])), sum[r]);
    if constexpr (kLeast) {
      const Floats sums = load(panel + block * kPanelBlock + kVector);
      sum[r] = fmadd(all(rows.least[block * kLanes + r]), sums, sum[r]);
    }
  }
}

/// Starts the products of two blocks of a panel, or of the last one, and leaves them in `dots`.
void start(const TileRows& rows, const std::byte* panel, int64_t block, int32_t* dots) {
  const int8_t* const values = rows.values + block * kTileBlock;
  panel += block * kPanelBlock;
  multiply_block<0>(values, panel, dots);
  if (block + 1 < rows.depth) multiply_block<1>(values + kTileBlock, panel + kPanelBlock, dots + kSums);
}

template <bool kLeast>
void multiply_panels(const TileRows& rows, const std::byte* panel, int64_t tokens, float* c,
                     int64_t c_stride) {
  // The tiles of two blocks are multiplied while the sums of the two before are scaled.
  alignas(64) int32_t dots[2][2 * kSums];
  int half = 0;
  start(rows, panel, 0, dots[half]);
  for (int64_t token = 0; token < tokens; token += kLanes) {
    const std::byte* const next = panel + rows.depth * kPanelBlock;
    Floats sum[kLanes];
    TAPLINE_UNROLL for (int64_t r = 0; r < kLanes; ++r) {
      sum[r] = zeros();
    }
    for (int64_t block = 0; block < rows.depth; block += 2) {
      const int32_t* const own = dots[half];
      half = 1 - half;
      if (block + 2 < rows.depth) {
        start(rows, panel, block + 2, dots[half]);
      } else if (token + kLanes < tokens) {
        start(rows, next, 0, dots[half]);
      }
      add_block<kLeast>(own, rows, block, panel, sum);
      if (block + 1 < rows.depth) add_block<kLeast>(own + kSums, rows, block + 1, panel, sum);
    }
    // A copy: the sums stay in registers.
    Floats results[kLanes];
    for (int64_t r = 0; r < kLanes; ++r) results[r] = sum[r];
    store(results, kLanes, tokens - token, c + token * c_stride, c_stride);
    panel = next;
  }
}

}  // namespace

void multiply_byte_tiles(const TileRows& rows, const std::byte* panels, int64_t tokens, float* c,
                         int64_t c_stride) {
  const MatrixRegisters registers(kForms);
  if (rows.least == nullptr) {
    multiply_panels<false>(rows, panels, tokens, c, c_stride);
  } else {
    multiply_panels<true>(rows, panels, tokens, c, c_stride);
  }
}

}  // namespace tapline::products

#endif  // TAPLINE_BYTE_TILES
