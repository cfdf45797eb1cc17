#pragma once

#include <string>
#include <vector>

#include "capture/block_points.h"
#include "capture/graph_view.h"
#include "capture/path_steps.h"
#include "model/model.h"

namespace tapline {

/// The steps from the stream to what a block's MLP reads (ffn_in), read from the compute graph: a norm.
struct FfnInputPath {
  std::string why;  // why it is unknown, one sentence; empty if it is known
  std::vector<PathStep> steps;
};

/// The path of every block of a graph of `n_tokens` tokens. `subject` begins a sentence: "The architecture
/// 'x' ".
std::vector<FfnInputPath> read_ffn_input_paths(const GraphView& graph, const Model& model,
                                               const BlockPoints& points, int64_t n_tokens,
                                               const std::string& subject);

}  // namespace tapline
