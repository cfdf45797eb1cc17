// Flash attention of the processor, instead of ggml's. ggml has three implementations: F16 sums below 64
// rows, F32 tiles from there on, and parts for a single token. They round differently, by 5e-4, which
// products with eight-bit tokens amplify to 2 to 4 %: a row would depend on the rest of the batch.
//
// Here a row's attention has one order: a score is summed along the head's width, weights and values along
// the cells, and a masked cell adds exactly nothing, wherever it is in the cache. So a row has the same bits
// alone and in a batch, in any cells, with any number of threads.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ggml-cpu-impl.h"
#include "ggml-impl.h"
#include "ops.h"
#include "scratch.h"
#include "unroll.h"
#include "vec.h"

extern "C" void ggml_own_flash_attn_ext(const ggml_compute_params*, ggml_tensor*);

namespace tapline::products {

namespace {

#if defined(__GNUC__)

/// Rows per vector, each a query head's token; and cells that are converted to F32 together.
constexpr int kRows = 16;
constexpr int kCells = 16;
typedef float Lanes __attribute__((vector_size(4 * kRows)));
typedef double WideLanes __attribute__((vector_size(8 * kRows)));

// The tile sizes that fit the registers. The order of sums does not depend on them.
#if defined(__AVX512F__)
constexpr int kCellTile = 8;
constexpr int kWidthTile = 4;
#else
constexpr int kCellTile = 4;
constexpr int kWidthTile = 1;
#endif
constexpr int kRowTile = 4;

/// out[cell][row]: products of each query, `queries` [depth][row], with each key, [cell][depth].
void multiply_keys(const float* queries, const float* keys, int64_t depth, float* out) {
  for (int first = 0; first < kCells; first += kCellTile) {
    Lanes sums[kCellTile] = {};
    const float* const own = keys + first * depth;
    for (int64_t d = 0; d < depth; ++d) {
      const Lanes query = *reinterpret_cast<const Lanes*>(queries + d * kRows);
      TAPLINE_UNROLL for (int c = 0; c < kCellTile; ++c) {
        sums[c] += query * own[c * depth + d];
      }
    }
    for (int c = 0; c < kCellTile; ++c) *reinterpret_cast<Lanes*>(out + (first + c) * kRows) = sums[c];
  }
}

/// out[row][width] += weights[cell][row] * values[cell][width], cell after cell.
template <int kCount, int kVectors>
void add_values(const float* weights, const float* values, int64_t width, float* out) {
  Lanes sums[kCount][kVectors];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = *reinterpret_cast<const Lanes*>(out + r * width + v * kRows);
  }
  for (int cell = 0; cell < kCells; ++cell) {
    Lanes value[kVectors];
    TAPLINE_UNROLL for (int v = 0; v < kVectors; ++v) {
      value[v] = *reinterpret_cast<const Lanes*>(values + cell * width + v * kRows);
    }
    TAPLINE_UNROLL for (int r = 0; r < kCount; ++r) {
      const float weight = weights[cell * kRows + r];
      TAPLINE_UNROLL for (int v = 0; v < kVectors; ++v) {
        sums[r][v] += value[v] * weight;
      }
    }
  }
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Lanes*>(out + r * width + v * kRows) = sums[r][v];
  }
}

template <int kCount>
void add_values_of_rows(const float* weights, const float* values, int64_t width, float* out) {
  int64_t at = 0;
  for (; at + kWidthTile * kRows <= width; at += kWidthTile * kRows)
    add_values<kCount, kWidthTile>(weights, values + at, width, out + at);
  for (; at < width; at += kRows) add_values<kCount, 1>(weights, values + at, width, out + at);
}

void to_float(ggml_type type, const void* from, float* to, int64_t count) {
  if (type == GGML_TYPE_F16) {
    ggml_cpu_fp16_to_fp32(static_cast<const ggml_fp16_t*>(from), to, count);
  } else {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  }
}

class Attention {
 public:
  Attention(const ggml_compute_params* params, ggml_tensor* dst)
      : params_(params),
        dst_(dst),
        q_(dst->src[0]),
        k_(dst->src[1]),
        v_(dst->src[2]),
        mask_(dst->src[3]),
        sinks_(dst->src[4]),
        depth_(k_->ne[0]),
        width_(v_->ne[0]),
        cells_(k_->ne[1]),
        group_(q_->ne[2] / k_->ne[2]),
        rows_(group_ * q_->ne[1]) {
    std::memcpy(&scale_, dst->op_params, sizeof scale_);
    std::memcpy(&max_bias_, dst->op_params + 1, sizeof max_bias_);
    std::memcpy(&softcap_, dst->op_params + 2, sizeof softcap_);
    if (softcap_ != 0.0F) scale_ /= softcap_;
  }

  bool supported() const {
    const auto simple = [](ggml_type type) { return type == GGML_TYPE_F32 || type == GGML_TYPE_F16; };
    return !params_->use_ref && q_->type == GGML_TYPE_F32 && simple(k_->type) && simple(v_->type) &&
           width_ % kRows == 0 && q_->ne[2] % k_->ne[2] == 0 && v_->ne[2] == k_->ne[2] &&
           v_->ne[3] == k_->ne[3] && k_->nb[0] == ggml_type_size(k_->type) &&
           v_->nb[0] == ggml_type_size(v_->type);
  }

  void compute() {
    const int64_t heads = k_->ne[2] * q_->ne[3];
    // Smaller tiles if there would not be one for each thread.
    const int64_t share = (rows_ * heads + params_->nth - 1) / params_->nth;
    tile_ = std::clamp<int64_t>(share, 1, kRows);
    const int64_t tiles = (rows_ + tile_ - 1) / tile_;
    if (params_->ith == 0) ggml_threadpool_chunk_set(params_->threadpool, params_->nth);
    ggml_barrier(params_->threadpool);
    for (int64_t at = params_->ith; at < tiles * heads;
         at = ggml_threadpool_chunk_add(params_->threadpool, 1)) {
      const int64_t head = at / tiles;
      // The last rows see the most cells: they are first, so that threads end together.
      compute_tile(head % k_->ne[2], head / k_->ne[2], (tiles - 1 - at % tiles) * tile_);
    }
  }

 private:
  struct Memory {
    float* queries;  // [depth][row]
    float* block;    // [cell][depth or width]
    float* weights;  // [cell][row], of the blocks that any row sees
    float* sums;     // [row][width]
    float* masks;    // [row][cell] of a block
    int32_t* blocks;
  };

  Memory memory() const {
    thread_local Scratch scratch;
    const auto floats = [](int64_t count) { return static_cast<size_t>((count + 15) / 16 * 16); };
    const int64_t padded = (cells_ + kCells - 1) / kCells * kCells;
    const size_t sizes[] = {floats(depth_ * kRows), floats(kCells * std::max(depth_, width_)),
                            floats(padded * kRows), floats(kRows * width_),
                            floats(kRows * kCells), floats(padded / kCells)};
    size_t all = 0;
    for (const size_t size : sizes) all += size;
    auto* at = reinterpret_cast<float*>(scratch.at_least(all * sizeof(float)));
    float* parts[6];
    for (int i = 0; i < 6; ++i) {
      parts[i] = at;
      at += sizes[i];
    }
    return {parts[0], parts[1], parts[2], parts[3], parts[4], reinterpret_cast<int32_t*>(parts[5])};
  }

  /// A tile's rows [first, first + count) of a key head: token after token, of each the heads that share it.
  void compute_tile(int64_t key_head, int64_t batch, int64_t first) const {
    const auto count = static_cast<int>(std::min(tile_, rows_ - first));
    const Memory memory = this->memory();
    std::memset(memory.queries, 0, static_cast<size_t>(depth_) * kRows * sizeof(float));
    for (int r = 0; r < count; ++r) {
      const auto* query = at<float>(q_, token(first + r), head(key_head, first + r), batch);
      for (int64_t d = 0; d < depth_; ++d) memory.queries[d * kRows + r] = query[d];
    }
    Lanes most = {};
    const int blocks = score(memory, key_head, batch, first, count, most);
    finish_scores(memory, key_head, first, count, blocks, most);
    std::memset(memory.sums, 0, static_cast<size_t>(count) * width_ * sizeof(float));
    for (int b = 0; b < blocks; ++b) {
      read(v_, memory.blocks[b], key_head, batch, width_, memory.block);
      add_block(memory.weights + b * kCells * kRows, memory.block, count, memory.sums);
    }
    write(memory, key_head, batch, first, count);
  }

  /// Scores of the blocks that any row sees; `most` becomes the largest of each row.
  int score(const Memory& memory, int64_t key_head, int64_t batch, int64_t first, int count,
            Lanes& most) const {
    for (int r = 0; r < kRows; ++r) most[r] = -INFINITY;
    const MaskRows mask_rows(*this, key_head, batch, first, count);
    int blocks = 0;
    for (int64_t cell = 0; cell < cells_; cell += kCells) {
      const Seen seen = mask_rows.seen(cell);
      if (seen == Seen::kNothing) continue;
      if (seen == Seen::kMasked) mask_rows.read(cell, memory.masks);
      float* const own = memory.weights + static_cast<int64_t>(blocks) * kCells * kRows;
      memory.blocks[blocks++] = static_cast<int32_t>(cell);
      read(k_, cell, key_head, batch, depth_, memory.block);
      multiply_keys(memory.queries, memory.block, depth_, own);
      for (int i = 0; i < kCells * kRows; ++i) own[i] *= scale_;
      if (softcap_ != 0.0F) {
        for (int i = 0; i < kCells * kRows; ++i) own[i] = softcap_ * std::tanh(own[i]);
      }
      if (seen == Seen::kMasked) {
        for (int r = 0; r < kRows; ++r) {
          for (int c = 0; c < kCells; ++c) own[c * kRows + r] += memory.masks[r * kCells + c];
        }
      }
      for (int c = 0; c < kCells; ++c) {
        const Lanes& scores = *reinterpret_cast<const Lanes*>(own + c * kRows);
        most = scores > most ? scores : most;
      }
    }
    return blocks;
  }

  /// Scores to weights that add up to one.
  void finish_scores(const Memory& memory, int64_t key_head, int64_t first, int count, int blocks,
                     Lanes most) const {
    alignas(64) float sinks[kRows];
    for (int r = 0; r < kRows; ++r) {
      sinks[r] = -INFINITY;
      if (sinks_ != nullptr && r < count)
        sinks[r] = static_cast<const float*>(sinks_->data)[head(key_head, first + r)];
      most[r] = std::max(most[r], sinks[r]);
      if (most[r] == -INFINITY) most[r] = 0.0F;  // a row that sees nothing
    }
    const int cells = blocks * kCells;
    for (int c = 0; c < cells; ++c) *reinterpret_cast<Lanes*>(memory.weights + c * kRows) -= most;
    // ggml's exp, on whole vectors, so that every number is computed in the same way.
    ggml_vec_soft_max_f32(cells * kRows, memory.weights, memory.weights, 0.0F);
    WideLanes sum = {};
    for (int c = 0; c < cells; ++c)
      sum += __builtin_convertvector(*reinterpret_cast<const Lanes*>(memory.weights + c * kRows), WideLanes);
    Lanes factor;
    for (int r = 0; r < kRows; ++r) {
      const double all =
          sum[r] + (sinks_ == nullptr ? 0.0 : std::exp(static_cast<double>(sinks[r] - most[r])));
      factor[r] = all == 0.0 ? 0.0F : static_cast<float>(1.0 / all);
    }
    for (int c = 0; c < cells; ++c) *reinterpret_cast<Lanes*>(memory.weights + c * kRows) *= factor;
  }

  enum class Seen { kNothing, kMasked, kAll };

  /// Where the masks of a tile's rows are. Heads of a token mostly share one row of the mask.
  class MaskRows {
   public:
    MaskRows(const Attention& of, int64_t key_head, int64_t batch, int64_t first, int count)
        : cells_(of.cells_), masked_(of.mask_ != nullptr) {
      const ggml_tensor* const mask = of.mask_;
      for (int r = 0; r < count && masked_; ++r) {
        const int64_t head = of.head(key_head, first + r);
        rows_[r] = of.at<ggml_fp16_t>(mask, of.token(first + r), head % mask->ne[2], batch % mask->ne[3]);
        slopes_[r] = of.slope(head);
        if (r == 0 || rows_[r] != rows_[r - 1]) different_[different_count_++] = rows_[r];
      }
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
      constexpr uint64_t kFourInfinities = 0xFC00FC00FC00FC00;  // negative ones
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
  };

  /// A block of keys or values as F32; cells after the last one are zero.
  void read(const ggml_tensor* from, int64_t cell, int64_t key_head, int64_t batch, int64_t size,
            float* to) const {
    const int64_t group = q_->ne[3] / from->ne[3];
    for (int64_t c = 0; c < kCells; ++c, to += size) {
      if (cell + c < cells_) {
        to_float(from->type, at<char>(from, cell + c, key_head, batch / group), to, size);
      } else {
        std::fill(to, to + size, 0.0F);
      }
    }
  }

  void add_block(const float* weights, const float* values, int count, float* sums) const {
    int r = 0;
    for (; r + kRowTile <= count; r += kRowTile)
      add_values_of_rows<kRowTile>(weights + r, values, width_, sums + r * width_);
    switch (count - r) {
      case 3:
        return add_values_of_rows<3>(weights + r, values, width_, sums + r * width_);
      case 2:
        return add_values_of_rows<2>(weights + r, values, width_, sums + r * width_);
      case 1:
        return add_values_of_rows<1>(weights + r, values, width_, sums + r * width_);
      default:
        return;
    }
  }

  void write(const Memory& memory, int64_t key_head, int64_t batch, int64_t first, int count) const {
    for (int r = 0; r < count; ++r) {
      auto* const to = static_cast<char*>(dst_->data) + head(key_head, first + r) * dst_->nb[1] +
                       token(first + r) * dst_->nb[2] + batch * dst_->nb[3];
      std::memcpy(to, memory.sums + r * width_, static_cast<size_t>(width_) * sizeof(float));
    }
  }

  int64_t token(int64_t row) const { return row / group_; }
  int64_t head(int64_t key_head, int64_t row) const { return key_head * group_ + row % group_; }

  /// ALiBi's slope.
  float slope(int64_t head) const {
    if (max_bias_ <= 0.0F) return 1.0F;
    const int64_t power = int64_t{1} << static_cast<int64_t>(std::floor(std::log2(q_->ne[2])));
    return head < power ? std::pow(2.0F, -max_bias_ / power * (head + 1))
                        : std::pow(2.0F, -max_bias_ / 2.0F / power * (2 * (head - power) + 1));
  }

  template <class Number>
  static const Number* at(const ggml_tensor* tensor, int64_t one, int64_t two, int64_t three) {
    return reinterpret_cast<const Number*>(static_cast<const char*>(tensor->data) + one * tensor->nb[1] +
                                           two * tensor->nb[2] + three * tensor->nb[3]);
  }

  const ggml_compute_params* params_;
  ggml_tensor* dst_;
  const ggml_tensor* q_;
  const ggml_tensor* k_;
  const ggml_tensor* v_;
  const ggml_tensor* mask_;
  const ggml_tensor* sinks_;
  int64_t depth_;
  int64_t width_;
  int64_t cells_;
  int64_t group_;  // query heads of a key head
  int64_t rows_;   // of a key head
  int64_t tile_ = kRows;
  float scale_ = 1.0F;
  float max_bias_ = 0.0F;
  float softcap_ = 0.0F;
};

#endif

}  // namespace

}  // namespace tapline::products

extern "C" void ggml_compute_forward_flash_attn_ext(const ggml_compute_params* params, ggml_tensor* dst) {
#if defined(__GNUC__)
  tapline::products::Attention attention(params, dst);
  if (attention.supported()) return attention.compute();
#endif
  ggml_own_flash_attn_ext(params, dst);
}
