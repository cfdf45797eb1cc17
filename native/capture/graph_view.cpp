#include "capture/graph_view.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace tapline {

float op_float(const ggml_tensor* t, int index) {
  float value;
  std::memcpy(&value, reinterpret_cast<const char*>(t->op_params) + index * sizeof(float), sizeof(value));
  return value;
}

namespace {

bool is_copy(const ggml_tensor* t) {
  const char* first = std::strchr(t->name, '#');
  return t->op == GGML_OP_NONE && first != nullptr && std::strrchr(t->name, '#') != first;
}

/// A copy also has the strides of its original, which distinguishes views of one shape (mamba's are all
/// unnamed).
bool same_layout(const ggml_tensor* a, const ggml_tensor* b) {
  return a->type == b->type && std::equal(std::begin(a->ne), std::end(a->ne), std::begin(b->ne)) &&
         std::equal(std::begin(a->nb), std::end(a->nb), std::begin(b->nb));
}

}  // namespace

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
  trace_copies();
}

std::string GraphView::original_name(const ggml_tensor* tensor) {
  if (!is_copy(tensor)) return tensor->name;
  const std::string name = tensor->name;  // device#name#number
  const size_t begin = name.find('#') + 1;
  return name.substr(begin, name.rfind('#') - begin);
}

void GraphView::trace_copies() {
  // Some architectures give the tensors of all blocks the same name. A copy then belongs to the nearest one
  // before its first reader. Each device has one copy of a tensor, so two copies with the same original
  // disprove this.
  std::set<std::pair<std::string, int>> claimed;
  for (int i = 0; i < size(); ++i) {
    each_source(i, [&](const ggml_tensor* source) {
      if (!is_copy(source) || index_.count(source) > 0) return;
      const std::string name = original_name(source);
      for (int j = i - 1; j >= 0; --j) {
        if (name != node(j)->name || !same_layout(source, node(j))) continue;
        const std::string copy = source->name;
        const std::string device = copy.substr(0, copy.find('#'));
        if (!claimed.emplace(device, j).second) copies_known_ = false;
        index_.emplace(source, j);
        return;
      }
    });
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

std::vector<bool> GraphView::reaching(int end, int from) const {
  std::vector<bool> reached(nodes_.size(), false);
  if (end > from) reached[static_cast<size_t>(end)] = true;
  for (int i = end; i > from; --i) {
    if (!reached[static_cast<size_t>(i)]) continue;
    each_source(i, [&](const ggml_tensor* source) {
      const int index = index_of(source);
      if (index > from) reached[static_cast<size_t>(index)] = true;
    });
  }
  return reached;
}

}  // namespace tapline
