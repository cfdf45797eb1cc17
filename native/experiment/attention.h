#pragma once

#include <cstddef>
#include <vector>

#include "experiment/passes.h"

namespace tapline {

/// Layers whose attention weights are read, for a text in one pass.
struct AttentionRequest {
  std::vector<int> layers;  // distinct; none: no attention
  std::vector<int> heads;   // distinct, of each of these layers; none: all
  /// Also multiplies the weights with the cached values, on the host, and compares with the heads' outputs.
  bool prove = false;
};

struct LayerAttention {
  int layer = 0;
  std::vector<int> heads;
  std::vector<float> weights;  // [heads, tokens, tokens]: of each token over all tokens, after the softmax
  double apart = 0;            // with `prove`: the product's relative L2 distance from the heads' outputs
};

/// Reads attention from a pass over a whole text and checks it: each row sums to 1, or to less in models with
/// sinks, and no weight is on a cell without a token or, in a causal model, on a later one.
class AttentionReader {
 public:
  /// Throws if a layer has no attention weights or no such head, and if the text began in an earlier pass.
  AttentionReader(Passes& passes, const AttentionRequest& request, size_t tokens);

  /// Rows of Point::kAttention, then, with `prove`, of Point::kHeadOut. Throws kCompute, kInternal.
  void take(const TappedRows& tapped);
  std::vector<LayerAttention> result() { return std::move(layers_); }

 private:
  void check_row(const float* row, size_t token, size_t cells, bool sinks, int layer) const;
  void prove(LayerAttention& layer, const TappedRows& tapped) const;

  std::vector<LayerAttention> layers_;
  size_t tokens_;
  bool causal_;
};

}  // namespace tapline
