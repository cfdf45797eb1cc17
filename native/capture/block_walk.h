#pragma once

#include <string>

#include "capture/graph_paths.h"

namespace tapline {

/// What one block adds to the residual stream.
struct Block {
  TracedNode in;  // the stream that is added to; of a block that is not proven, no node where that is unknown
  TracedNode attn;  // what its first half adds
  TracedNode mid;   // the stream between the halves; no node: they are parallel
  TracedNode ffn;   // what its second half adds
  std::string why;  // it is not proven to be its input and what its halves add; empty where it is
};

/// Reads in the graph what lies between two places of the residual stream: node `from`, -1 for the tokens
/// themselves, and node `to`, the block's output. `is_token_leaf` tells the leaves through which tokens
/// enter.
Block walk_block(const GraphView& graph, int from, int to, int n_embd,
                 bool (*is_token_leaf)(const ggml_tensor*));

}  // namespace tapline
