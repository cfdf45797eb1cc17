#pragma once

#include <string>

#include "capture/graph_paths.h"

namespace tapline {

/// The additions of one block to the residual stream.
struct Block {
  TracedNode in;    // the stream before the block; may have no node if the block is not proven
  TracedNode attn;  // the output of the first half
  TracedNode mid;   // the stream between the halves; no node: they are parallel
  TracedNode ffn;   // the output of the second half
  std::string why;  // why it is not proven to be the sum of these; empty if it is
};

/// Analyses the graph between two places of the residual stream: node `from`, or -1 for the tokens, and node
/// `to`, the block's output. `is_token_leaf` recognises the leaves through which tokens enter.
Block walk_block(const GraphView& graph, int from, int to, int n_embd,
                 bool (*is_token_leaf)(const ggml_tensor*));

}  // namespace tapline
