#pragma once

#include <string>

#include "capture/graph_paths.h"

namespace tapline {

/// What a block's heads read, and what they made of it.
struct Heads {
  TracedNode weights;  // no node: flash attention keeps none
  TracedNode out;      // no node: the heads' outputs do not stand side by side anywhere
  int count = 0;
  std::string why;  // there are none; empty where there are
};

/// Looks for the attention on the way from a block's input, node `from`, to what its first half adds.
Heads find_heads(const GraphView& graph, int from, const TracedNode& added);

}  // namespace tapline
