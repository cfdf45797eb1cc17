#pragma once

#include <functional>
#include <vector>

#include "base/cancel.h"
#include "base/thread_team.h"
#include "graph/graph_nodes.h"

namespace tapline {

/// The parts of each target's and each node's value that come directly from embeddings, nodes and what is
/// left: through the residual stream and through attention heads that are not nodes.
struct DirectEdges {
  /// [targets + nodes, columns]. The columns: embeddings by token, nodes, then by layer and token the neurons
  /// that are not nodes, and the same of rounding.
  std::vector<float> parts;
  size_t columns = 0;
  // By row. The value is the sum of its parts and its constant.
  std::vector<double> values;
  std::vector<double> constants;  // biases
  /// The sum's distance from the value, over the L2 norm of the parts and the value.
  std::vector<double> residuals;
};

/// `progress` counts batches of rows by block.
template <class T>
DirectEdges direct_edges(const FrozenBlocks& blocks, const std::vector<GraphTarget>& targets,
                         const GraphNodes<T>& nodes, ThreadTeam& team, const CancelToken& cancel,
                         const std::function<void(size_t, size_t)>& progress);

}  // namespace tapline
