#pragma once

#include <string>

#include "capture/block_walk.h"
#include "capture/graph_paths.h"

namespace tapline {

/// The input of a block's second half: the output of its norm, weighted.
struct FfnInput {
  TracedNode node;  // no node if it is not proven
  std::string why;  // not proven, after "block N "; empty if it is
};

/// The node that all of the second half is computed from: a norm of the stream with its weight and bias,
/// which nothing else reads.
FfnInput find_ffn_input(const GraphView& graph, const Block& parts, int n_embd);

}  // namespace tapline
