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
#include <vector>

#include "ggml-cpu-impl.h"
#include "ggml-impl.h"
#include "ops.h"
#include "scratch.h"
#include "vec.h"
#if defined(__GNUC__)
#include "attention_masks.h"
#include "attention_tiles.h"
#endif

extern "C" void ggml_own_flash_attn_ext(const ggml_compute_params*, ggml_tensor*);

namespace tapline::products {

namespace {

#if defined(__GNUC__)

/// Keys and values of a head in F32, in bytes, that a thread keeps for all of its tiles.
constexpr int64_t kKept = int64_t{512} << 10U;

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
    Blocks blocks(*this, tiles > params_->nth);
    for (int64_t at = params_->ith; at < tiles * heads;
         at = ggml_threadpool_chunk_add(params_->threadpool, 1)) {
      const int64_t head = at / tiles;
      const Head of{head % k_->ne[2], head / k_->ne[2]};
      blocks.turn_to(of);
      // The last rows see the most cells: they are first, so that threads end together.
      compute_tile(of, blocks, (tiles - 1 - at % tiles) * tile_);
    }
  }

 private:
  struct Head {
    int64_t key;
    int64_t batch;

    bool operator==(const Head& other) const { return key == other.key && batch == other.batch; }
  };

  struct Memory {
    float* queries;  // [depth][row]
    float* weights;  // [cell][row], of the blocks that any row sees
    float* sums;     // [row][width]
    float* masks;    // [row][cell] of a block
    int32_t* blocks;
  };

  Memory memory() const {
    thread_local Scratch scratch;
    const auto floats = [](int64_t count) { return static_cast<size_t>((count + 15) / 16 * 16); };
    const int64_t padded = (cells_ + kCells - 1) / kCells * kCells;
    const size_t sizes[] = {floats(depth_ * kRows), floats(padded * kRows), floats(kRows * width_),
                            floats(kRows * kCells), floats(padded / kCells)};
    size_t all = 0;
    for (const size_t size : sizes) all += size;
    auto* at = reinterpret_cast<float*>(scratch.at_least(all * sizeof(float)));
    float* parts[5];
    for (int i = 0; i < 5; ++i) {
      parts[i] = at;
      at += sizes[i];
    }
    return {parts[0], parts[1], parts[2], parts[3], reinterpret_cast<int32_t*>(parts[4])};
  }

  /// Blocks of a head's keys and values as F32, [cell][depth or width]; cells after the last one are zero.
  /// Tiles read the same blocks, so they are kept for all of them if they fit.
  class Blocks {
   public:
    Blocks(const Attention& of, bool shared)
        : of_(of),
          count_((of.cells_ + kCells - 1) / kCells),
          kept_(shared && count_ * kCells * (of.depth_ + of.width_) * int64_t{sizeof(float)} <= kKept) {
      thread_local Scratch scratch;
      const int64_t numbers = kept_ ? count_ * (of.depth_ + of.width_) : std::max(of.depth_, of.width_);
      memory_ =
          reinterpret_cast<float*>(scratch.at_least(static_cast<size_t>(numbers * kCells) * sizeof(float)));
    }

    void turn_to(Head head) {
      if (head == head_) return;
      head_ = head;
      if (kept_) known_.assign(static_cast<size_t>(2 * count_), 0);
    }

    const float* keys(int64_t cell) { return block(of_.k_, cell, of_.depth_, 0); }
    const float* values(int64_t cell) { return block(of_.v_, cell, of_.width_, 1); }

   private:
    const float* block(const ggml_tensor* from, int64_t cell, int64_t size, int64_t which) {
      if (!kept_) {
        of_.read(from, cell, head_, size, memory_);
        return memory_;
      }
      const int64_t index = cell / kCells;
      float* const own = memory_ + (which * count_ * of_.depth_ + index * size) * kCells;
      char& known = known_[static_cast<size_t>(which * count_ + index)];
      if (known == 0) of_.read(from, cell, head_, size, own);
      known = 1;
      return own;
    }

    const Attention& of_;
    int64_t count_;
    bool kept_;
    float* memory_ = nullptr;
    std::vector<char> known_;  // whether a block of keys, or of values, has been read
    Head head_{-1, -1};
  };

  /// A tile's rows [first, first + count) of a head: token after token, of each the heads that share it.
  void compute_tile(Head of, Blocks& blocks, int64_t first) const {
    const auto count = static_cast<int>(std::min(tile_, rows_ - first));
    const Memory memory = this->memory();
    const float* queries[kRows];
    for (int r = 0; r < count; ++r) {
      queries[r] = at<float>(q_, token(first + r), head(of.key, first + r), of.batch);
      // Another core has often written them.
      for (int64_t d = 0; d < depth_; d += kRows) __builtin_prefetch(queries[r] + d);
    }
    std::memset(memory.queries, 0, static_cast<size_t>(depth_) * kRows * sizeof(float));
    for (int r = 0; r < count; ++r) {
      for (int64_t d = 0; d < depth_; ++d) memory.queries[d * kRows + r] = queries[r][d];
    }
    Lanes most = {};
    const int seen = score(memory, of, blocks, first, count, most);
    finish_scores(memory, of.key, first, count, seen, most);
    std::memset(memory.sums, 0, static_cast<size_t>(count) * width_ * sizeof(float));
    for (int b = 0; b < seen; ++b)
      add_block(memory.weights + b * kCells * kRows, blocks.values(memory.blocks[b]), count, memory.sums);
    write(memory, of, first, count);
  }

  /// Scores of the blocks that any row sees; `most` becomes the largest of each row.
  int score(const Memory& memory, Head of, Blocks& blocks, int64_t first, int count, Lanes& most) const {
    for (int r = 0; r < kRows; ++r) most[r] = -INFINITY;
    const MaskRows mask_rows = masks_of(of, first, count);
    int found = 0;
    for (int64_t cell = 0; cell < cells_; cell += kCells) {
      cell = mask_rows.skip(cell);
      if (cell >= cells_) break;
      const Seen seen = mask_rows.seen(cell);
      if (seen == Seen::kNothing) continue;
      if (seen == Seen::kMasked) mask_rows.read(cell, memory.masks);
      float* const own = memory.weights + static_cast<int64_t>(found) * kCells * kRows;
      memory.blocks[found++] = static_cast<int32_t>(cell);
      multiply_keys(memory.queries, blocks.keys(cell), depth_, own);
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
    return found;
  }

  MaskRows masks_of(Head of, int64_t first, int count) const {
    MaskRows rows(cells_, mask_ != nullptr);
    for (int r = 0; r < count && mask_ != nullptr; ++r) {
      const int64_t own = head(of.key, first + r);
      rows.add(at<ggml_fp16_t>(mask_, token(first + r), own % mask_->ne[2], of.batch % mask_->ne[3]),
               slope(own));
    }
    return rows;
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
    alignas(64) double sums[kRows];
    for (int half = 0; half < kRows; half += kRows / 2) {
      WideLanes sum = {};
      for (int c = 0; c < cells; ++c) {
        const float* const weights = memory.weights + c * kRows + half;
        sum += __builtin_convertvector(*reinterpret_cast<const HalfLanes*>(weights), WideLanes);
      }
      *reinterpret_cast<WideLanes*>(sums + half) = sum;
    }
    Lanes factor;
    for (int r = 0; r < kRows; ++r) {
      const double all =
          sums[r] + (sinks_ == nullptr ? 0.0 : std::exp(static_cast<double>(sinks[r] - most[r])));
      factor[r] = all == 0.0 ? 0.0F : static_cast<float>(1.0 / all);
    }
    for (int c = 0; c < cells; ++c) *reinterpret_cast<Lanes*>(memory.weights + c * kRows) *= factor;
  }

  void read(const ggml_tensor* from, int64_t cell, Head of, int64_t size, float* to) const {
    const int64_t group = q_->ne[3] / from->ne[3];
    for (int64_t c = 0; c < kCells; ++c, to += size) {
      if (cell + c < cells_) {
        to_float(from->type, at<char>(from, cell + c, of.key, of.batch / group), to, size);
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

  void write(const Memory& memory, Head of, int64_t first, int count) const {
    for (int r = 0; r < count; ++r) {
      auto* const to = static_cast<char*>(dst_->data) + head(of.key, first + r) * dst_->nb[1] +
                       token(first + r) * dst_->nb[2] + of.batch * dst_->nb[3];
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
