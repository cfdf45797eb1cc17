#pragma once

#include <string>
#include <vector>

#include "capture/block_points.h"
#include "capture/graph_view.h"
#include "capture/path_steps.h"
#include "model/model.h"

namespace tapline {

enum class Activation { kRelu, kReluSquared, kSilu, kGelu, kGeluErf, kGeluQuick };

/// How a dense MLP writes to the residual stream, read from the compute graph: its neurons are
/// activation(gate) * up, or activation(gate) without an `up`.
struct MlpPath {
  std::string why;              // why it is unknown, one sentence; empty if it is known
  std::vector<PathStep> input;  // the steps that gate and up share where one matrix computes both
  std::vector<PathStep> gate;
  std::vector<PathStep> up;
  std::vector<PathStep> output;  // from the neurons to ffn_out
  Activation activation = Activation::kRelu;
  bool gated = false;
  int neurons = 0;
};

/// The path of every block of a graph of `n_tokens` tokens. `subject` begins a sentence: "The architecture
/// 'x' ".
std::vector<MlpPath> read_mlp_paths(const GraphView& graph, const Model& model, const BlockPoints& points,
                                    int64_t n_tokens, const std::string& subject);

}  // namespace tapline
