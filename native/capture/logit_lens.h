#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capture/lens_recipe.h"
#include "llama.h"

namespace tapline {

/// The k most probable tokens of each row, most probable first, ties by token id; and where its target
/// stands, if there are targets.
struct TopTokens {
  int k = 0;
  std::vector<int32_t> ids;                 // [rows, k]
  std::vector<float> probabilities;         // [rows, k], softmax over the whole vocabulary
  std::vector<float> target_probabilities;  // [rows]
  std::vector<int32_t> target_ranks;        // [rows]; 1: the most probable, ties by token id; 0: no target
};

/// Turns rows of logits into their top k, on `n_threads` threads. Throws kCompute where a row's logits are
/// not finite.
/// @param targets a token a row, of those whose place is wanted; negative: none. Empty: none at all
TopTokens top_tokens(const float* logits, size_t rows, int n_vocab, int k,
                     const std::vector<int32_t>& targets, int n_threads);

/// Applies a model's final norm and output head to rows of a block output, on the devices that hold the
/// weights. One batched product a call; logits exist for a bounded number of rows at a time.
class LogitLens {
 public:
  LogitLens(const llama_model* model, const LensRecipe& recipe, int n_embd, int n_vocab, int n_threads);
  ~LogitLens();
  LogitLens(const LogitLens&) = delete;
  LogitLens& operator=(const LogitLens&) = delete;

  /// Logits [rows, n_vocab] of block outputs [rows, n_embd]. Throws kCompute.
  void logits(const float* states, size_t rows, std::vector<float>& out);

  /// Top k of each row of block outputs [rows, n_embd]; targets as of top_tokens().
  TopTokens top(const float* states, size_t rows, int k, const std::vector<int32_t>& targets = {});

 private:
  struct Devices;
  struct Graph;
  void prepare(size_t rows);

  LensRecipe recipe_;
  int n_embd_;
  int n_vocab_;
  int n_threads_;
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace tapline
