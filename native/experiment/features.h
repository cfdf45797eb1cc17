#pragma once

#include <cstdint>
#include <vector>

#include "base/counted_rows.h"
#include "experiment/passes.h"

namespace tapline {

/// Which rows of a sequence are wanted: its last token's, every token's, or the mean of its tokens'.
enum class FeatureRows { kLast, kAll, kMean };

struct FeatureRequest {
  std::vector<std::vector<llama_token>> sequences;
  std::vector<int> layers;
  Point point = Point::kBlockOut;
  FeatureRows rows = FeatureRows::kLast;
  /// Of each sequence the first token that its mean, or all its rows, take in: of a prompt and its response
  /// the response may be wanted alone. Empty: the first. A mean takes in the rows that count from there on.
  std::vector<int32_t> starts;

  size_t start_of(size_t sequence) const {
    return starts.empty() ? 0 : static_cast<size_t>(starts[sequence]);
  }
};

/// Rows of the point: one [rows, n_embd] matrix a layer, in the order asked for; sequence by sequence.
struct FeatureResult {
  std::vector<int> layers;
  std::vector<std::vector<float>> states;
  std::vector<ExcludedRows> excluded;  // from the means, of all sequences; one a layer
};

/// Block outputs of many sequences, in packed batches that end after the deepest layer. Where every row of
/// the last block is wanted, a batch holds room for the logits of all of its tokens. Forgets the context's
/// sequence. `progress` counts sequences.
FeatureResult features(Passes& passes, const FeatureRequest& request, const CancelToken& cancel,
                       const CountProgress& progress);

}  // namespace tapline
