#pragma once

#include <functional>
#include <vector>

#include "base/cancel.h"
#include "base/thread_team.h"
#include "capture/place.h"
#include "graph/frozen_blocks.h"

namespace tapline {

/// A linear function of one token's row in the residual stream: direction . row + constant.
struct StreamFunction {
  Place place;  // a block's input, its middle or its output
  int token = 0;
  std::vector<double> direction;  // [hidden]
  double constant = 0;
};

/// A neuron's contribution to a value.
struct NeuronPart {
  int layer = 0;
  int token = 0;
  int neuron = 0;
  double activation = 0;
  double value = 0;
};

/// The parts of one function's value with attention weights and norms fixed: value = the sum of
/// embeddings, ffn, rounding and constant. With neurons, MLPs are passed, too, and the sum has ffn_rounding
/// instead of ffn. Heads, neurons and streams divide other ways, what comes through them.
struct StreamParts {
  double value = 0;
  double constant = 0;                     // its own, and biases
  std::vector<double> embeddings;          // [tokens]
  std::vector<double> ffn;                 // [layers, tokens]: each ffn_out
  std::vector<double> rounding;            // [layers, tokens]: see FrozenAttention::Parts
  std::vector<double> ffn_rounding;        // [layers, tokens]: the same of passed MLPs
  std::vector<double> streams;             // [layers, tokens]: each block's input
  std::vector<std::vector<double>> heads;  // by layer, [heads, tokens]: the heads' outputs
  std::vector<NeuronPart> neurons;         // the strongest, in order
  /// What the value gains in the linear model if one ffn_out or head's output is that of another text
  /// (attribution patching); empty without one.
  std::vector<double> ffn_gains;                // [layers, tokens]
  std::vector<std::vector<double>> head_gains;  // by layer, [heads, tokens]
  /// The sum's distance from the value, over the L2 norm of the parts and the value.
  double residual = 0;
};

struct LinearPassRequest {
  std::vector<BlockRows> others;  // of another text with as many tokens, for gains; or none
  std::vector<StreamFunction> functions;
  size_t neurons = 0;    // how many of each function; 0: MLPs are not passed
  bool precise = false;  // in double precision
};

struct LinearPass {
  std::vector<StreamParts> functions;
  std::vector<double> apart;      // by layer: see FrozenAttention::apart()
  std::vector<double> ffn_apart;  // by layer: see FrozenMlp::apart(); empty without neurons
};

/// Divides functions of the residual stream among the places that write to it, downwards through the blocks,
/// all functions together, as attribution graphs do (Ameisen et al., "Circuit Tracing", 2025). All paths are
/// known, those of MLPs with neurons. `progress` counts blocks.
LinearPass linear_pass(const FrozenBlocks& blocks, const LinearPassRequest& request, ThreadTeam& team,
                       const CancelToken& cancel, const std::function<void(size_t, size_t)>& progress);

}  // namespace tapline
