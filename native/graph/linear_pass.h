#pragma once

#include <functional>
#include <vector>

#include "base/cancel.h"
#include "base/thread_team.h"
#include "capture/attention_path.h"
#include "capture/place.h"
#include "graph/frozen_attention.h"
#include "model/weight_file.h"

namespace tapline {

/// A linear function of one token's row in the residual stream: direction . row + constant.
struct StreamFunction {
  Place place;  // a block's input, its middle or its output
  int token = 0;
  std::vector<double> direction;  // [hidden]
  double constant = 0;
};

/// What one function's value consists of with attention weights and norms fixed: value = the sum of
/// embeddings, ffn, rounding and constant. `heads` divides another way, what comes through attention.
struct StreamParts {
  double value = 0;
  double constant = 0;                     // its own, and biases
  std::vector<double> embeddings;          // [tokens]
  std::vector<double> ffn;                 // [layers, tokens]: each ffn_out
  std::vector<double> rounding;            // [layers, tokens]: see FrozenAttention::Parts
  std::vector<std::vector<double>> heads;  // by layer, [heads, tokens]: the heads' outputs
  /// The sum's distance from the value, over the L2 norm of the parts and the value.
  double residual = 0;
};

struct LinearPass {
  std::vector<StreamParts> functions;
  std::vector<double> apart;  // by layer: see FrozenAttention::apart()
};

/// Divides functions of the residual stream among the places that write to it, downwards through the blocks,
/// all functions together, as attribution graphs do (Ameisen et al., "Circuit Tracing", 2025). With
/// `precise`, in double precision. `progress` counts blocks.
LinearPass linear_pass(const std::vector<AttentionPath>& paths, const WeightFile& weights,
                       const std::vector<BlockRows>& blocks, const std::vector<float>& last, int tokens,
                       const std::vector<StreamFunction>& functions, bool precise, ThreadTeam& team,
                       const CancelToken& cancel, const std::function<void(size_t, size_t)>& progress);

}  // namespace tapline
