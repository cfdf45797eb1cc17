#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/graph_paths.h"

namespace tapline {

/// What a block's router chose.
struct Experts {
  TracedNode weights;           // of each token's experts, [1, used, tokens]; no node: none were found
  std::vector<uint8_t> choice;  // the way on from there to all experts' ids, best first
  int count = 0;                // of experts to choose from
  int used = 0;                 // for a token
  std::string why;              // there are none; empty where there are
};

/// Looks for the choice of experts between a block's input, node `from`, and its output: the ids by which
/// matrices are picked (MUL_MAT_ID) must be the first of a sorted row, and the weights must be read from rows
/// by these very ids and multiply what such a product gives, or what goes into it.
Experts find_experts(const GraphView& graph, int from, const TracedNode& output);

}  // namespace tapline
