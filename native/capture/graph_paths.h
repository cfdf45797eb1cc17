#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "capture/graph_view.h"

namespace tapline {

/// A node, and the way to it from the output of its block: which operand, node by node.
struct Stop {
  int node = -1;
  std::vector<uint8_t> route;

  Stop source(const GraphView& graph, uint8_t operand) const;
};

/// The ways back from one stop of a block to the block's input.
class Ways {
 public:
  /// `from` is the node of the input; -1: the tokens themselves.
  Ways(const GraphView& graph, int from, const Stop& end);

  /// Nodes that may lie on the way are first() ... last().
  int first() const { return from_ + 1; }
  int last() const { return end_.node; }
  bool reached(int node) const { return node == end_.node || parents_[static_cast<size_t>(node)].first >= 0; }
  /// A node that is reached, with a way to it.
  Stop stop(int node) const;
  /// The only node of that kind on the way which reads `node` as that operand; -1 where there is none.
  int reader(int node, ggml_op op, int operand) const;

 private:
  const GraphView& graph_;
  int from_;
  Stop end_;
  std::vector<std::pair<int, uint8_t>> parents_;  // who reads a node, and as which operand
};

}  // namespace tapline
