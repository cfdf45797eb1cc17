#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/cancel.h"
#include "capture/lens_reading.h"
#include "capture/lens_recipe.h"
#include "capture/top_tokens.h"
#include "llama.h"

namespace tapline {

/// Applies a model's final norm and output head to rows of a block output, on the devices of the weights. One
/// batched product per call; logits exist for a bounded number of rows at a time.
class LogitLens {
 public:
  LogitLens(const llama_model* model, const LensRecipe& recipe, int n_embd, int n_vocab, int n_threads);
  ~LogitLens();
  LogitLens(const LogitLens&) = delete;
  LogitLens& operator=(const LogitLens&) = delete;

  /// Logits [rows, n_vocab] of block outputs [rows, n_embd]. Throws kCompute.
  void logits(const float* states, size_t rows, std::vector<float>& out);

  /// Top k of each row of block outputs [rows, n_embd]; targets as of top_tokens().
  TopTokens top(const float* states, size_t rows, int k, const int32_t* targets = nullptr);

  /// A translator in the memory of the first device of the weights. Throws kInvalidArgument if the file does
  /// not contain its numbers, kOutOfMemory.
  std::shared_ptr<LoadedTranslator> load(const Translator& translator);

  /// Reads rows of several places, through their translators if given. The head is one product over all
  /// places, for as many rows as memory for logits allows.
  std::vector<LensReading> read(const LensRequest& request, const CancelToken& cancel);

 private:
  struct Devices;
  struct Graph;
  void prepare(size_t rows);
  /// The logits in host memory: where they were computed, or copied to `buffer`.
  const float* computed(const float* states, size_t rows, std::vector<float>& buffer);
  /// Entropies and divergences of `count` rows of every place, with contiguous logits.
  void compare(const LensRequest& request, const float* logits, size_t count,
               std::vector<LensReading>& readings);

  LensRecipe recipe_;
  int n_embd_;
  int n_vocab_;
  RowThreads threads_;
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace tapline
