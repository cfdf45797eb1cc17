// The method is that of Intel's optimisation manual, "Intel AMX": one operand's rows are K bytes long, the
// other has four bytes of each column side by side, which is how panels of tokens are packed. A block has its
// own scale, so K is 32, half of what a tile holds.

#include "byte_tiles.h"

#ifdef TAPLINE_PRODUCTS_TILES

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tile.h"

namespace tapline::products {

namespace {

// The build leaves these instructions out elsewhere: ggml's own products with tiles round differently.
#define TAPLINE_WITH_TILES __attribute__((target("amx-tile,amx-int8")))

bool allowed_tiles() {
  unsigned a, b, c, d;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kTiles = 1U << 24U;
  constexpr unsigned kBytes = 1U << 25U;
  if ((d & kTiles) == 0 || (d & kBytes) == 0) return false;
  // Threads have no room for tiles before the process asks (Linux 5.16).
  constexpr long kAskForState = 0x1023;
  constexpr long kStateOfTiles = 18;
  return syscall(SYS_arch_prctl, kAskForState, kStateOfTiles) == 0;
}

/// The form of tiles: 0 and 1 hold sums, 2 and 3 weights, 4 and 5 tokens.
struct alignas(64) Forms {
  uint8_t palette = 1;
  uint8_t start = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 32, 32, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 8, 8};
};

/// Vectors of a panel before a block's numbers: scales, and sums.
constexpr int64_t kBeforeValues = 2;
constexpr int64_t kPanelBlock = 10 * kVector;
constexpr int64_t kSums = kLanes * kLanes;

// Compilers' names of tiles are literals, so this can't be a function with the tiles' numbers as parameters.
#define TAPLINE_TILE_BLOCK(sums, weights, tokens, block)                               \
  _tile_zero(sums);                                                                    \
  _tile_loadd(weights, values + (block)*kTileBlock, kTileRow);                         \
  _tile_loadd(tokens, panel + (block)*kPanelBlock + kBeforeValues * kVector, kVector); \
  _tile_dpbssd(sums, weights, tokens);                                                 \
  _tile_stored(sums, dots + (block)*kSums, kVector)

TAPLINE_WITH_TILES inline void multiply_block(const int8_t* values, const std::byte* panel, int32_t* dots) {
  TAPLINE_TILE_BLOCK(0, 2, 4, 0);
}

TAPLINE_WITH_TILES inline void multiply_two_blocks(const int8_t* values, const std::byte* panel,
                                                   int32_t* dots) {
  TAPLINE_TILE_BLOCK(0, 2, 4, 0);
  TAPLINE_TILE_BLOCK(1, 3, 5, 1);
}

#undef TAPLINE_TILE_BLOCK

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
TAPLINE_WITH_TILES inline void start(const TileRows& rows, const std::byte* panel, int64_t block,
                                     int32_t* dots) {
  const int8_t* const values = rows.values + block * kTileBlock;
  if (block + 1 < rows.depth) {
    multiply_two_blocks(values, panel + block * kPanelBlock, dots);
  } else {
    multiply_block(values, panel + block * kPanelBlock, dots);
  }
}

template <bool kLeast>
TAPLINE_WITH_TILES void multiply_panels(const TileRows& rows, const std::byte* panel, int64_t tokens,
                                        float* c, int64_t c_stride) {
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

bool has_byte_tiles() {
  static const bool allowed = allowed_tiles();
  return allowed;
}

TAPLINE_WITH_TILES void multiply_byte_tiles(const TileRows& rows, const std::byte* panels, int64_t tokens,
                                            float* c, int64_t c_stride) {
  const Forms forms;
  // GCC does not know that instructions with tiles read memory.
  asm volatile("" : : "r"(&forms) : "memory");
  _tile_loadconfig(&forms);
  if (rows.least == nullptr) {
    multiply_panels<false>(rows, panels, tokens, c, c_stride);
  } else {
    multiply_panels<true>(rows, panels, tokens, c, c_stride);
  }
  _tile_release();
}

}  // namespace tapline::products

#endif  // TAPLINE_PRODUCTS_TILES
