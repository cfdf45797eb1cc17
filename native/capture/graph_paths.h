#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "capture/graph_view.h"

namespace tapline {

/// A node, and the path to it from the output of its block as operands, node by node.
struct TracedNode {
  int node = -1;
  std::vector<uint8_t> route;

  TracedNode source(const GraphView& graph, uint8_t operand) const;
};

/// The paths back from one node of a block to the block's input.
class GraphPaths {
 public:
  /// `from` is the node of the input; -1: the tokens themselves.
  GraphPaths(const GraphView& graph, int from, const TracedNode& end);

  /// Nodes that may lie on a path are first() ... last().
  int first() const { return from_ + 1; }
  int last() const { return end_.node; }
  bool reached(int node) const { return node == end_.node || parents_[static_cast<size_t>(node)].first >= 0; }
  /// A node that is reached, with a path to it.
  TracedNode trace(int node) const;
  /// The only node of that kind on a path that reads `node` as that operand; -1 if there is none.
  int reader(int node, ggml_op op, int operand) const;

 private:
  const GraphView& graph_;
  int from_;
  TracedNode end_;
  std::vector<std::pair<int, uint8_t>> parents_;  // the reader of a node, and the operand
};

}  // namespace tapline
