// The method is that of Intel's optimisation manual, "Intel AMX": rows of one operand are K bytes long, the
// other has four bytes of each column side by side, which is how panels of tokens are packed. A block has its
// own scale, so K is 32, half of what a tile holds.

#include "byte_tiles.h"

#ifdef TAPLINE_BYTE_TILES

#include "tile.h"

namespace tapline::products {

namespace {

/// Registers 0 to 3 are sums, 4 and 5 have weights, 6 and 7 tokens.
constexpr RegisterForms kForms = {{16, 16, 16, 16, 16, 16, 8, 8}, {64, 64, 64, 64, 32, 32, 64, 64}};

/// Vectors of a panel before a block's numbers: scales, and sums.
constexpr int64_t kBeforeValues = 2;
constexpr int64_t kPanelBlock = 10 * kVector;
constexpr int64_t kSums = kLanes * kLanes;

/// Multiplies a block; two in a row use different registers (kSecond).
template <int kSum, int kSecond>
void multiply_block(const int8_t* values, const std::byte* panel) {
  clear_register<kSum>();
  load_register<4 + kSecond>(values, kTileRow);
  load_register<6 + kSecond>(panel + kBeforeValues * kVector, kVector);
  add_bytes<kSum, 4 + kSecond, 6 + kSecond>();
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

/// Walks over pairs of a panel's blocks, panel by panel; the last of a panel may have one block.
class Pairs {
 public:
  Pairs(const TileRows& rows, const std::byte* panel, int64_t tokens)
      : rows_(rows), panel_(panel), panels_((tokens + kLanes - 1) / kLanes) {}

  /// Starts the products of the next pair, if there is one, in registers 0 and 1 or, with kSet, 2 and 3.
  template <int kSet>
  void multiply() {
    if (panels_ == 0) return;
    const int8_t* const values = rows_.values + block_ * kTileBlock;
    const std::byte* const panel = panel_ + block_ * kPanelBlock;
    multiply_block<2 * kSet, 0>(values, panel);
    if (block_ + 1 < rows_.depth) multiply_block<2 * kSet + 1, 1>(values + kTileBlock, panel + kPanelBlock);
    block_ += 2;
    if (block_ < rows_.depth) return;
    block_ = 0;
    panel_ += rows_.depth * kPanelBlock;
    --panels_;
  }

 private:
  const TileRows& rows_;
  const std::byte* panel_;
  int64_t panels_;
  int64_t block_ = 0;
};

template <int kSet>
void store_pair(int32_t* dots) {
  store_register<2 * kSet>(dots, kVector);
  store_register<2 * kSet + 1>(dots + kSums, kVector);
}

/// A pair's products are started two pairs before they are scaled, and stored one pair before: nothing waits
/// for a register or a store.
template <bool kLeast>
void multiply_panels(const TileRows& rows, const std::byte* panel, int64_t tokens, Fetch& fetch, float* c,
                     int64_t c_stride) {
  alignas(64) int32_t dots[2][2 * kSums];
  Pairs pairs(rows, panel, tokens);
  clear_register<1>();
  clear_register<2>();
  clear_register<3>();
  pairs.multiply<0>();
  store_pair<0>(dots[0]);
  pairs.multiply<1>();
  int own = 0;
  for (int64_t token = 0; token < tokens; token += kLanes) {
    Floats sum[kLanes];
    TAPLINE_UNROLL for (int64_t r = 0; r < kLanes; ++r) {
      sum[r] = zeros();
    }
    for (int64_t block = 0; block < rows.depth; block += 2) {
      fetch.turn();
      if (own == 0) {
        pairs.multiply<0>();
      } else {
        pairs.multiply<1>();
      }
      add_block<kLeast>(dots[own], rows, block, panel, sum);
      if (own == 0) {
        store_pair<1>(dots[1]);
      } else {
        store_pair<0>(dots[0]);
      }
      if (block + 1 < rows.depth) add_block<kLeast>(dots[own] + kSums, rows, block + 1, panel, sum);
      own = 1 - own;
    }
    // A copy: the sums stay in registers.
    Floats results[kLanes];
    for (int64_t r = 0; r < kLanes; ++r) results[r] = sum[r];
    store(results, kLanes, tokens - token, c + token * c_stride, c_stride);
    panel += rows.depth * kPanelBlock;
  }
}

}  // namespace

void multiply_byte_tiles(const TileRows& rows, const std::byte* panels, int64_t tokens, Fetch fetch, float* c,
                         int64_t c_stride) {
  const MatrixRegisters registers(kForms);
  if (rows.least == nullptr) {
    multiply_panels<false>(rows, panels, tokens, fetch, c, c_stride);
  } else {
    multiply_panels<true>(rows, panels, tokens, fetch, c, c_stride);
  }
}

}  // namespace tapline::products

#endif  // TAPLINE_BYTE_TILES
