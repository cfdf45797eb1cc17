#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cancel.h"
#include "capture/block_tap.h"
#include "capture/logit_lens.h"
#include "capture/residual_stream.h"
#include "model/model.h"

namespace tapline {

struct ContextOptions {
  uint32_t n_ctx = 512;       // tokens held, over all sequences
  uint32_t n_batch = 0;       // tokens computed at once; 0: chosen by vocabulary size
  uint32_t n_seq_max = 1;     // sequences held at once
  int n_threads = 0;          // 0: all cores
};

/// Block outputs of one layer.
struct LayerStates {
  int layer = 0;
  size_t rows = 0;
  std::vector<float> states;  // [rows, n_embd]; empty unless kept
  std::vector<float> norms;   // [rows], L2
  TopTokens lens;             // empty unless asked for and supported
};

/// A change of one token's row at one block output while the pass runs.
struct EditRequest {
  int layer = 0;
  int position = 0;  // index in the request's tokens
  float scale = 1.0F;
  std::vector<float> offset;
};

struct AdvanceRequest {
  std::vector<llama_token> tokens;
  std::vector<int> layers;     // distinct; any order
  bool all_rows = true;        // every token's row, or the last token's only
  bool keep_states = true;     // return the states, or only norms and lens
  int lens_top = 0;            // top k of the logit lens for every captured row; 0: none
  int next_top = 0;            // top k of the next token after the last one; 0: none
  bool keep_logits = false;    // the next token's logits
  bool early_exit = false;     // compute no block behind the deepest captured one, when no head is wanted
  std::vector<EditRequest> edits;
};

struct AdvanceResult {
  std::vector<LayerStates> layers;  // ascending by layer
  TopTokens next;                   // one row
  std::vector<float> logits;        // [n_vocab]
};

struct FeatureRequest {
  std::vector<std::vector<llama_token>> sequences;
  std::vector<int> layers;
};

/// Final-token block outputs: one [sequences, n_embd] matrix a layer, ascending by layer.
struct FeatureResult {
  std::vector<int> layers;
  std::vector<std::vector<float>> states;
};

/// One llama_context with a tap on its blocks: experiments on a model, isolated from whatever else uses the
/// same weights. Calls are serialised; a Context never touches another context's K/V cache.
class Context {
 public:
  /// Throws kOutOfMemory when the context does not fit.
  Context(std::shared_ptr<Model> model, const ContextOptions& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Model& model() const { return *model_; }
  const ResidualStream& stream() const { return stream_; }
  uint32_t n_ctx() const { return n_ctx_; }
  /// Tokens that one advance() may take.
  uint32_t n_batch() const { return n_batch_; }
  uint32_t n_past() const { return n_past_; }

  /// Continues the context's one sequence with 1..n_batch() tokens. Call in chunks; the K/V cache is kept.
  ///
  /// No output head is computed for rows that nobody asked for. With early_exit a sequence can only be
  /// continued to the same depth, until reset().
  AdvanceResult advance(const AdvanceRequest& request, const CancelToken& cancel);

  /// Final-token block outputs of many sequences, in packed batches that leave behind the deepest layer.
  /// Forgets the context's sequence. `progress(done, total)` counts sequences.
  FeatureResult features(const FeatureRequest& request, const CancelToken& cancel,
                         const std::function<void(size_t, size_t)>& progress);

  /// Forgets all tokens.
  void reset();

 private:
  struct Batch;

  std::vector<int> check_layers(const std::vector<int>& layers) const;
  void check_tokens(const std::vector<llama_token>& tokens) const;
  std::vector<MicroBatch> plan(const Batch& batch) const;
  void decode(const Batch& batch, const CancelToken& cancel);
  void clear_memory();
  LogitLens& lens();

  std::shared_ptr<Model> model_;
  BlockTap tap_;
  llama_context* ctx_ = nullptr;
  ResidualStream stream_;
  std::unique_ptr<LogitLens> lens_;
  std::mutex mutex_;
  CancelToken abort_;  // what the abort callback of the running decode looks at
  uint32_t n_ctx_ = 0;
  uint32_t n_batch_ = 0;
  uint32_t n_seq_max_ = 1;
  int n_threads_ = 1;
  uint32_t n_past_ = 0;
  int depth_ = 0;  // blocks that hold K/V of every token so far
};

}  // namespace tapline
