#include "capture/graph_view.h"

namespace tapline {

GraphView::GraphView(ggml_cgraph* graph) {
  const int n = ggml_graph_n_nodes(graph);
  nodes_.reserve(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    ggml_tensor* t = ggml_graph_node(graph, i);
    nodes_.push_back(t);
    index_.emplace(t, i);
    const auto [entry, fresh] = by_name_.emplace(t->name, i);
    if (!fresh) entry->second = -1;
  }
}

int GraphView::index_of(const ggml_tensor* tensor) const {
  const auto found = index_.find(tensor);
  return found == index_.end() ? -1 : found->second;
}

int GraphView::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : found->second;
}

std::vector<bool> GraphView::reached_from_leaves(bool (*is_root)(const ggml_tensor*)) const {
  std::vector<bool> reached(nodes_.size(), false);
  for (int i = 0; i < size(); ++i) {
    each_source(i, [&](const ggml_tensor* source) {
      const int index = index_of(source);
      if (index >= 0 ? reached[static_cast<size_t>(index)] : is_root(source))
        reached[static_cast<size_t>(i)] = true;
    });
  }
  return reached;
}

std::vector<bool> GraphView::reached_from(int start) const {
  std::vector<bool> reached(nodes_.size(), false);
  reached[static_cast<size_t>(start)] = true;
  for (int i = start + 1; i < size(); ++i) {
    each_source(i, [&](const ggml_tensor* source) {
      const int index = index_of(source);
      if (index >= 0 && reached[static_cast<size_t>(index)]) reached[static_cast<size_t>(i)] = true;
    });
  }
  return reached;
}

std::vector<bool> GraphView::reaching(int end) const {
  std::vector<bool> reached(nodes_.size(), false);
  reached[static_cast<size_t>(end)] = true;
  for (int i = end; i >= 0; --i) {
    if (!reached[static_cast<size_t>(i)]) continue;
    each_source(i, [&](const ggml_tensor* source) {
      const int index = index_of(source);
      if (index >= 0) reached[static_cast<size_t>(index)] = true;
    });
  }
  return reached;
}

}  // namespace tapline
