#pragma once

#include <string>

#include "capture/graph_paths.h"

namespace tapline {

/// The attention heads of a block.
struct Heads {
  TracedNode weights;  // no node: flash attention does not store them
  TracedNode out;      // no node: there is no tensor with the concatenated outputs
  int count = 0;
  std::string why;  // why there are none; or empty
};

/// Finds the attention between a block's input, node `from`, and the output of its first half.
Heads find_heads(const GraphView& graph, int from, const TracedNode& added);

}  // namespace tapline
