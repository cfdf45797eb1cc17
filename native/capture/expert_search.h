#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/graph_paths.h"

namespace tapline {

/// The choice of a block's router.
struct Experts {
  TracedNode weights;           // of each token's experts, [1, used, tokens]; no node: not found
  std::vector<uint8_t> choice;  // the route from there to the sorted ids of all experts
  int count = 0;                // experts to choose from
  int used = 0;                 // experts per token
  std::string why;              // why they were not found; or empty
};

/// Finds the choice of experts between a block's input, node `from`, and its output: the ids that select
/// matrices (MUL_MAT_ID) must be the first of a sorted row, and the weights must be read by the same ids and
/// multiply the input or the output of such a product.
Experts find_experts(const GraphView& graph, int from, const TracedNode& output);

}  // namespace tapline
