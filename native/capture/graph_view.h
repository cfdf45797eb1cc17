#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ggml.h"

namespace tapline {

/// A number among the parameters of an operation.
float op_float(const ggml_tensor* t, int index);

inline bool is_norm(const ggml_tensor* t) {
  return t->op == GGML_OP_RMS_NORM || t->op == GGML_OP_NORM;
}

/// A compute graph as a plain list, with the queries for finding a residual stream.
///
/// With several devices, ggml's scheduler has replaced tensors that cross devices with copies, where a walk
/// along the sources would end. A copy is recognised by its name, "<device>#<name of the original>#<number>",
/// and this class treats it as its original.
class GraphView {
 public:
  explicit GraphView(ggml_cgraph* graph);

  int size() const { return static_cast<int>(nodes_.size()); }
  ggml_tensor* node(int index) const { return nodes_[static_cast<size_t>(index)]; }
  /// Index of a node, or of the original of a copy; -1 for leaves (weights, inputs, caches).
  int index_of(const ggml_tensor* tensor) const;
  /// Whether every copy could be traced to one tensor; otherwise nothing can be proven about this graph.
  bool copies_known() const { return copies_known_; }
  /// Name of a tensor, or of the original of a copy.
  static std::string original_name(const ggml_tensor* tensor);
  /// Index of the only node with that name; -1 if there is none or more than one.
  int find(const std::string& name) const;
  /// Calls visit(source) for each tensor that a node reads, including the source of a view.
  template <class Visit>
  void each_source(int index, Visit&& visit) const {
    const ggml_tensor* t = node(index);
    for (const ggml_tensor* source : t->src) {
      if (source != nullptr) visit(source);
    }
    if (t->view_src != nullptr) visit(t->view_src);
  }

  /// For each node, whether it is computed from a leaf for which is_root(leaf) is true.
  std::vector<bool> reached_from_leaves(bool (*is_root)(const ggml_tensor*)) const;
  /// For each node, whether it is computed from node `start` (`start` itself counts).
  std::vector<bool> reached_from(int start) const;
  /// For each node after node `from`, whether node `end` is computed from it (`end` itself counts).
  std::vector<bool> reaching(int end, int from = -1) const;

 private:
  std::vector<ggml_tensor*> nodes_;
  std::unordered_map<const ggml_tensor*, int> index_;
  std::unordered_map<std::string, int> by_name_;  // -1 marks a name used twice
  bool copies_known_ = true;

  void trace_copies();
};

}  // namespace tapline
