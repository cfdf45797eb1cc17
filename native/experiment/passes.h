#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <typeindex>
#include <vector>

#include "base/cancel.h"
#include "base/counted.h"
#include "capture/block_tap.h"
#include "capture/logit_lens.h"
#include "capture/residual_stream.h"
#include "capture/top_tokens.h"
#include "experiment/token_batch.h"
#include "llama-cpp.h"
#include "model/model.h"

namespace tapline {

class GraphPoints;

struct ContextOptions {
  uint32_t n_ctx = 512;         // tokens in all sequences
  uint32_t n_batch = 0;         // tokens per batch; 0: batch_tokens() with the usual bound
  uint32_t n_seq_max = 1;       // sequences at the same time
  int n_threads = 0;            // 0: all cores
  bool keep_attention = false;  // compute without flash attention, which does not store weights
  std::string edits;            // of block outputs, and readings: see GraphEdits::chosen
};

constexpr uint32_t kUsualBatch = 256;
/// Tokens per batch: enough to use the machine, few enough that their logits stay within 160 MiB if the last
/// block computes every row. A prompt that fits into one batch is not split: the few rows of a remainder
/// would take as much time as many.
uint32_t batch_tokens(const ModelInfo& info, uint32_t most);

/// The unit depends on the experiment.
using CountProgress = std::function<void(size_t done, size_t total)>;

/// One llama_context with a tap on its blocks, for all experiments: passes, memory, lens and threads. It is
/// isolated from other users of the same weights: no other context's K/V cache is touched.
///
/// An experiment is a pair of files in this folder: plain structs for request and result, and a function on
/// Passes& that holds lock(). Experiments with separate sequences clear the one that advance() continues.
class Passes : public Counted<Passes> {
 public:
  /// Throws kOutOfMemory when the context does not fit.
  Passes(std::shared_ptr<Model> model, const ContextOptions& options);
  ~Passes();
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;

  const Model& model() const { return *model_; }
  const ModelInfo& info() const { return model_->info(); }
  const ResidualStream& stream() const { return stream_; }
  uint32_t n_ctx() const { return n_ctx_; }
  /// Tokens of one batch.
  uint32_t n_batch() const { return n_batch_; }
  uint32_t n_seq_max() const { return n_seq_max_; }
  int n_threads() const { return n_threads_; }
  /// Whether a token's row depends only on earlier tokens, so that it predicts the next one.
  bool causal() const { return memory() != nullptr; }
  llama_memory_t memory() const { return llama_get_memory(ctx_); }

  std::unique_lock<std::mutex> lock() { return std::unique_lock<std::mutex>(mutex_); }

  /// Decodes with the tap armed. On any failure the context is cleared and the error is thrown.
  void run(const TokenBatch& batch, std::vector<TapPoint> points, bool leave_early,
           const BlockTap::Sink& sink, const CancelToken& cancel);
  /// The same with edits only.
  void run(const TokenBatch& batch, const BatchEdits& edits, const CancelToken& cancel);
  /// The same with a row instead of a token, without the tap.
  void run(const RowBatch& batch, const CancelToken& cancel);
  /// Adds `count` tokens of a sequence to a batch, the first at `position`; `answer` makes logits() available
  /// for the last one.
  void add(TokenBatch& batch, const llama_token* tokens, size_t count, size_t position, llama_seq_id sequence,
           bool answer) const;
  /// [n_vocab], valid until the next pass.
  const float* logits(size_t batch_row);

  /// Forgets all tokens.
  void reset();
  void clear_memory();
  /// Clears the sequences of an experiment, however it ends.
  struct ClearAtEnd {
    Passes& passes;
    ~ClearAtEnd() { passes.clear_memory(); }
  };
  /// The memory may hold non-finite numbers, so the next clear_memory() also zeroes the data.
  void taint() { tainted_ = true; }
  /// Whether the memory keeps every cell of a sequence's beginning until its end is computed, unlike
  /// recurrent states and sliding windows.
  bool keeps_beginnings(size_t n_tokens) const;
  /// The position of advance()'s sequence, with a copy of recurrent states; K/V is not copied.
  struct Checkpoint {
    uint32_t n_past = 0;
    std::vector<uint8_t> recurrent;
  };
  Checkpoint checkpoint() const;
  void restore(const Checkpoint& checkpoint);
  /// The sequence that advance() continues.
  struct Sequence {
    uint32_t n_past = 0;
    int depth = 0;  // number of blocks with K/V of every token so far
  };
  Sequence& sequence() { return sequence_; }

  /// Throws kUnsupportedArchitecture if the path from block outputs to logits is unknown.
  LogitLens& lens();
  RowThreads& row_threads() { return *row_threads_; }
  /// The result of find(), which is called once per result type.
  template <class Find>
  const auto& once(const Find& find) {
    using Found = decltype(find());
    std::any& found = found_once_[typeid(Found)];
    if (!found.has_value()) found = find();
    return *std::any_cast<Found>(&found);
  }

 private:
  void arm(const TokenBatch& batch, std::vector<TapPoint>& points, bool leave_early, bool reads);
  void decode(const llama_batch& batch, const CancelToken& cancel);
  void decode_each(const TokenBatch& batch, const std::vector<MicroBatch>& micros,
                   const std::vector<TapPoint>& points, const BlockTap::Sink& sink,
                   const CancelToken& cancel);

  std::shared_ptr<Model> model_;
  BlockTap tap_;
  llama_context_ptr owner_;  // a constructor that throws frees it
  llama_context* ctx_ = nullptr;
  ResidualStream stream_;
  bool in_graph_ = false;
  std::unique_ptr<GraphPoints> graph_points_;  // once a pass has any point
  std::unique_ptr<LogitLens> lens_;
  std::map<std::type_index, std::any> found_once_;
  std::mutex mutex_;
  CancelToken abort_;  // for the abort callback of the running decode
  uint32_t n_ctx_ = 0;
  uint32_t n_batch_ = 0;
  uint32_t n_seq_max_ = 1;
  int n_threads_ = 1;
  std::optional<RowThreads> row_threads_;
  Sequence sequence_;
  bool tainted_ = false;
  bool f32_attention_ = false;  // flash attention keeps keys and values in F32
};

}  // namespace tapline
