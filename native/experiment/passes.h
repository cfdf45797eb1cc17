#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

struct ContextOptions {
  uint32_t n_ctx = 512;         // tokens held, over all sequences
  uint32_t n_batch = 0;         // tokens computed at once; 0: chosen by vocabulary size
  uint32_t n_seq_max = 1;       // sequences held at once
  int n_threads = 0;            // 0: all cores
  bool keep_attention = false;  // compute without flash attention, which keeps no weights
};

/// Called with how much of how much is done, in the unit that an experiment documents.
using CountProgress = std::function<void(size_t done, size_t total)>;

/// One llama_context with a tap on its blocks, and what every experiment needs of it: the passes themselves,
/// the memory, lens and threads. Isolated from whatever else uses the same weights: no other context's K/V
/// cache is touched.
///
/// An experiment is a pair of files in this folder: plain structs for what it is asked and what it finds, and
/// a function on Passes& that holds lock() while it runs. Those that use sequences of their own forget the
/// one that advance() continues.
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
  /// Whether a token's row depends on the tokens before it only, so that it predicts the next one.
  bool causal() const { return memory() != nullptr; }
  llama_memory_t memory() const { return llama_get_memory(ctx_); }

  std::unique_lock<std::mutex> lock() { return std::unique_lock<std::mutex>(mutex_); }

  /// Decodes with the tap armed. On any failure the context forgets everything and the error is thrown.
  void run(const TokenBatch& batch, std::vector<TapPoint> points, bool leave_early,
           const BlockTap::Sink& sink, const CancelToken& cancel);
  /// The same with nothing but edits.
  void run(const TokenBatch& batch, const BatchEdits& edits, const CancelToken& cancel);
  /// The same of a row in a token's place, with no tap.
  void run(const RowBatch& batch, const CancelToken& cancel);
  /// Adds `count` tokens of a sequence to a batch, the first at `position`; with `answer`, such that logits()
  /// has what follows the last one.
  void add(TokenBatch& batch, const llama_token* tokens, size_t count, size_t position, llama_seq_id sequence,
           bool answer) const;
  /// [n_vocab], llama.cpp's own until the next pass.
  const float* logits(size_t batch_row);

  /// Forgets all tokens.
  void reset();
  void clear_memory();
  /// Of an experiment with sequences of its own: forgets them, however it ends.
  struct ClearAtEnd {
    Passes& passes;
    ~ClearAtEnd() { passes.clear_memory(); }
  };
  /// The memory may hold numbers that are not finite, so the next clear_memory() removes the numbers, too.
  void taint() { tainted_ = true; }
  /// Whether the memory still has every cell of a sequence's beginning when its end has been computed:
  /// recurrent states and sliding windows have not.
  bool keeps_beginnings(size_t n_tokens) const;
  /// How far the sequence of advance() has come; recurrent states are copied, K/V stays where it is.
  struct Checkpoint {
    uint32_t n_past = 0;
    std::vector<uint8_t> recurrent;
  };
  Checkpoint checkpoint() const;
  void restore(const Checkpoint& checkpoint);
  /// The one sequence that advance() continues.
  struct Sequence {
    uint32_t n_past = 0;
    int depth = 0;  // blocks that hold K/V of every token so far
  };
  Sequence& sequence() { return sequence_; }

  /// Throws kUnsupportedArchitecture where the path from block outputs to logits is not known.
  LogitLens& lens();
  RowThreads& row_threads() { return *row_threads_; }
  /// What find() returns, which is called once for each type of it.
  template <class Find>
  const auto& once(const Find& find) {
    using Found = decltype(find());
    std::any& found = found_once_[typeid(Found)];
    if (!found.has_value()) found = find();
    return *std::any_cast<Found>(&found);
  }

 private:
  void decode(const llama_batch& batch, const CancelToken& cancel);
  void decode_each(const TokenBatch& batch, const std::vector<MicroBatch>& micros,
                   const std::vector<TapPoint>& points, const BlockTap::Sink& sink,
                   const CancelToken& cancel);

  std::shared_ptr<Model> model_;
  BlockTap tap_;
  llama_context_ptr owner_;  // a constructor that throws frees it
  llama_context* ctx_ = nullptr;
  ResidualStream stream_;
  std::unique_ptr<LogitLens> lens_;
  std::map<std::type_index, std::any> found_once_;
  std::mutex mutex_;
  CancelToken abort_;  // what the abort callback of the running decode looks at
  uint32_t n_ctx_ = 0;
  uint32_t n_batch_ = 0;
  uint32_t n_seq_max_ = 1;
  int n_threads_ = 1;
  std::optional<RowThreads> row_threads_;
  Sequence sequence_;
  bool tainted_ = false;
};

}  // namespace tapline
