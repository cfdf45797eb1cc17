#include "capture/graph_paths.h"

#include <algorithm>

namespace tapline {

TracedNode TracedNode::source(const GraphView& graph, uint8_t operand) const {
  TracedNode next{graph.index_of(graph.node(node)->src[operand]), route};
  next.route.push_back(operand);
  return next;
}

GraphPaths::GraphPaths(const GraphView& graph, int from, const TracedNode& end)
    : graph_(graph), from_(from), end_(end), parents_(static_cast<size_t>(end.node + 1), {-1, 0}) {
  for (int i = end.node; i > from_; --i) {
    if (!reached(i)) continue;
    for (uint8_t s = 0; s < GGML_MAX_SRC; ++s) {
      const ggml_tensor* source = graph.node(i)->src[s];
      const int index = source == nullptr ? -1 : graph.index_of(source);
      if (index > from_ && index < i && !reached(index)) parents_[static_cast<size_t>(index)] = {i, s};
    }
  }
}

TracedNode GraphPaths::trace(int node) const {
  TracedNode found{node, {}};
  for (int i = node; i != end_.node; i = parents_[static_cast<size_t>(i)].first)
    found.route.push_back(parents_[static_cast<size_t>(i)].second);
  std::reverse(found.route.begin(), found.route.end());
  found.route.insert(found.route.begin(), end_.route.begin(), end_.route.end());
  return found;
}

int GraphPaths::reader(int node, ggml_op op, int operand) const {
  int found = -1;
  for (int i = node + 1; node >= 0 && i <= end_.node; ++i) {
    const ggml_tensor* t = graph_.node(i);
    if (!reached(i) || t->op != op || t->src[operand] == nullptr) continue;
    if (graph_.index_of(t->src[operand]) != node) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

}  // namespace tapline
