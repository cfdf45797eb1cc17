#pragma once

#include <cstddef>
#include <vector>

#include "experiment/passes.h"

namespace tapline {

/// Which layers' attention weights are wanted, of a text in one pass.
struct AttentionRequest {
  std::vector<int> layers;  // distinct; none: no attention
  std::vector<int> heads;   // distinct, of each of these layers; none: all
  /// Also multiplies the weights with the values in the memory, on the host, and compares with what heads
  /// read.
  bool prove = false;
};

/// Attention of one layer: how much each token reads of each.
struct LayerAttention {
  int layer = 0;
  std::vector<int> heads;
  std::vector<float> weights;  // [heads, tokens, tokens]: of each token over all of them, after the softmax
  double apart = 0;            // with `prove`: the product's relative L2 distance from what the heads read
};

/// Takes the attention out of a pass over a whole text, and checks that it can be one: each row sums to 1,
/// or to less where a model lets its tokens read a sink, and none reads a cell without a token, or in a
/// causal model a later one.
class AttentionReader {
 public:
  /// Throws where a layer keeps no attention, or has no such head, and where the text has begun before.
  AttentionReader(Passes& passes, const AttentionRequest& request, size_t tokens);

  /// Rows of Point::kAttention, then, where it is to be proven, of Point::kHeadOut. Throws kCompute,
  /// kInternal.
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
