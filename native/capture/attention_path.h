#pragma once

#include <string>
#include <vector>

#include "capture/block_points.h"
#include "capture/graph_view.h"
#include "capture/path_steps.h"
#include "model/model.h"

namespace tapline {

/// How a block's attention writes to the residual stream, read from the compute graph: the steps from the
/// block's input to its values, and those from the heads' outputs to attn_out. Between them, the attention
/// weights mix the values. Queries and keys only choose the weights, so they are not part of it.
struct AttentionPath {
  std::string why;  // why it is unknown, one sentence; empty if it is known
  std::vector<PathStep> values;
  std::vector<PathStep> output;
  int heads = 0;
  int value_heads = 0;  // fewer where heads share them
  int head_width = 0;   // of values
};

/// The path of every block of a graph of `n_tokens` tokens. `subject` begins a sentence: "The architecture
/// 'x' ". Only graphs that store attention weights have it.
std::vector<AttentionPath> read_attention_paths(const GraphView& graph, const Model& model,
                                                const BlockPoints& points, int64_t n_tokens,
                                                const std::string& subject);

}  // namespace tapline
