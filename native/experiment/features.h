#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/counted_rows.h"
#include "experiment/passes.h"

namespace tapline {

/// The rows of a sequence: that of the last token, all, or their mean.
enum class FeatureRows { kLast, kAll, kMean };

struct FeatureRequest {
  std::vector<std::vector<llama_token>> sequences;
  std::vector<int> layers;
  Point point = Point::kBlockOut;
  /// A second point of the same blocks, read in the same passes.
  std::optional<Point> target;
  FeatureRows rows = FeatureRows::kLast;
  /// By sequence: the first token for kAll and kMean, for example of a response after its prompt. Empty: 0.
  std::vector<int32_t> starts;

  size_t start_of(size_t sequence) const {
    return starts.empty() ? 0 : static_cast<size_t>(starts[sequence]);
  }
};

/// One [rows, n_embd] matrix per layer, sequence by sequence; then those of the target.
struct FeatureResult {
  std::vector<int> layers;
  std::vector<std::vector<float>> states;
  std::vector<ExcludedRows> excluded;  // by matrix: from the means of all sequences
};

/// Rows of many sequences, in packed batches that end after the deepest layer. All rows of the last block
/// need memory for the logits of all tokens of a batch. Clears the context's sequence. `progress` counts
/// sequences.
FeatureResult features(Passes& passes, const FeatureRequest& request, const CancelToken& cancel,
                       const CountProgress& progress);

}  // namespace tapline
