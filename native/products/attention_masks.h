#pragma once

// Which cells of the cache the rows of a tile see.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "attention_tiles.h"
#include "ggml-cpu-impl.h"
#include "ggml-impl.h"

namespace tapline::products {

enum class Seen { kNothing, kMasked, kAll };

/// The masks of a tile's rows.
class MaskRows {
 public:
  MaskRows(int64_t cells, bool masked) : cells_(cells), masked_(masked) {}

  /// The next row's mask; heads of a token mostly share one. A slope is multiplied with it (ALiBi).
  void add(const ggml_fp16_t* mask, float slope) {
    if (count_ == 0 || mask != rows_[count_ - 1]) different_[different_count_++] = mask;
    rows_[count_] = mask;
    slopes_[count_++] = slope;
  }

  /// The next cell from `cell` on that a row may see: of many sequences in a cache, a row sees one.
  int64_t skip(int64_t cell) const {
    while (masked_ && cell + kSkipped <= cells_ && sees_nothing(cell)) cell += kSkipped;
    return cell;
  }

  /// The cells of a block that the rows see; those after the last one are masked.
  Seen seen(int64_t cell) const {
    const bool whole = cell + kCells <= cells_;
    if (!masked_) return whole ? Seen::kAll : Seen::kMasked;
    if (!whole) return Seen::kMasked;
    bool any = false;
    bool all = true;
    for (int i = 0; i < different_count_; ++i) {
      const Seen own = seen(different_[i] + cell);
      any = any || own != Seen::kNothing;
      all = all && own == Seen::kAll;
    }
    return !any ? Seen::kNothing : all ? Seen::kAll : Seen::kMasked;
  }

  /// A block's masks, [row][cell], which are added to scores.
  void read(int64_t cell, float* masks) const {
    const auto cells = static_cast<int>(std::min<int64_t>(kCells, cells_ - cell));
    for (int r = 0; r < kRows; ++r, masks += kCells) {
      std::fill(masks, masks + cells, 0.0F);
      std::fill(masks + cells, masks + kCells, -INFINITY);
      if (rows_[r] == nullptr) continue;
      for (int c = 0; c < cells; ++c) masks[c] = slopes_[r] * GGML_CPU_FP16_TO_FP32(rows_[r][cell + c]);
    }
  }

 private:
  static constexpr int64_t kSkipped = 4 * kCells;
  static constexpr uint64_t kFourInfinities = 0xFC00FC00FC00FC00;  // negative ones

  bool sees_nothing(int64_t cell) const {
    uint64_t other = 0;
    for (int i = 0; i < different_count_; ++i) {
      uint64_t fours[kSkipped / 4];
      std::memcpy(fours, different_[i] + cell, sizeof fours);
      for (const uint64_t four : fours) other |= four ^ kFourInfinities;
    }
    return other == 0;
  }

  /// Most rows see a whole block or nothing of it, which needs no masks.
  static Seen seen(const ggml_fp16_t* masks) {
    uint64_t fours[kCells / 4];
    std::memcpy(fours, masks, sizeof fours);
    uint64_t either = 0;
    uint64_t both = ~uint64_t{0};
    for (const uint64_t four : fours) {
      either |= four;
      both &= four;
    }
    return either == 0                                            ? Seen::kAll
           : either == kFourInfinities && both == kFourInfinities ? Seen::kNothing
                                                                  : Seen::kMasked;
  }

  int64_t cells_;
  bool masked_;
  const ggml_fp16_t* rows_[kRows] = {};
  float slopes_[kRows] = {};
  const ggml_fp16_t* different_[kRows] = {};
  int different_count_ = 0;
  int count_ = 0;
};

}  // namespace tapline::products
