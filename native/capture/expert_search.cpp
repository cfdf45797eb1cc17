#include "capture/expert_search.h"

#include <utility>

namespace tapline {

namespace {

class ExpertSearch {
 public:
  ExpertSearch(const GraphView& graph, int from, const TracedNode& output)
      : graph_(graph), from_(from), paths_(graph, from, output) {}

  Experts find() {
    for (int i = paths_.first(); i <= paths_.last(); ++i) {
      if (!paths_.reached(i) || graph_.node(i)->op != GGML_OP_MUL_MAT_ID) continue;
      const int ids = graph_.index_of(graph_.node(i)->src[2]);
      if (ids <= from_) continue;  // of an adapter, independent of tokens
      if (ids_ >= 0 && ids != ids_) return refused("chooses experts more than once");
      ids_ = ids;
    }
    if (ids_ < 0) return refused("has no experts");
    const ggml_tensor* ids = graph_.node(ids_);
    const ggml_tensor* sorted = ids->src[0];
    const bool best = ids->op == GGML_OP_VIEW && ids->view_offs == 0 && sorted != nullptr &&
                      sorted->op == GGML_OP_ARGSORT && sorted->op_params[0] == GGML_SORT_ORDER_DESC &&
                      ggml_is_contiguous(sorted) && sorted->ne[2] == 1 && sorted->ne[3] == 1 &&
                      ids->ne[1] == sorted->ne[1] && ids->nb[1] == sorted->nb[1];
    if (!best) return refused("does not choose experts as the best of a row of scores");
    Experts experts;
    for (int i = paths_.first(); i <= paths_.last(); ++i) {
      if (!paths_.reached(i) || graph_.node(i)->op != GGML_OP_MUL) continue;
      for (uint8_t operand = 0; operand < 2; ++operand) {
        const ggml_tensor* weights = graph_.node(i)->src[operand];
        const ggml_tensor* weighed = graph_.node(i)->src[1 - operand];
        if (!are_weights(weights, weighed) || !are_experts(weighed, i)) continue;
        auto choice = way_to_choice(weights);
        if (choice.empty()) continue;
        if (experts.weights.node >= 0) return refused("weights its experts more than once");
        experts.weights = paths_.trace(i).source(graph_, operand);
        experts.choice = std::move(choice);
      }
    }
    if (experts.weights.node < 0) return refused("weights its experts in an unknown way");
    experts.count = static_cast<int>(sorted->ne[0]);
    experts.used = static_cast<int>(ids->ne[0]);
    return experts;
  }

 private:
  static Experts refused(const char* why) {
    Experts experts;
    experts.why = why;
    return experts;
  }

  /// Whether the shapes are those of one number, and one row, per token and chosen expert.
  bool are_weights(const ggml_tensor* weights, const ggml_tensor* rows) const {
    const ggml_tensor* ids = graph_.node(ids_);
    return weights != nullptr && rows != nullptr && weights->type == GGML_TYPE_F32 &&
           ggml_is_contiguous(weights) && weights->ne[0] == 1 && weights->ne[1] == ids->ne[0] &&
           weights->ne[2] == ids->ne[1] && weights->ne[3] == 1 && rows->ne[1] == ids->ne[0] &&
           rows->ne[2] == ids->ne[1] && rows->ne[3] == 1;
  }

  bool picks(const ggml_tensor* t) const {
    return t->op == GGML_OP_MUL_MAT_ID && graph_.index_of(t->src[2]) == ids_;
  }

  /// Whether `rows` are outputs of experts, or node `product` makes them inputs of experts.
  bool are_experts(const ggml_tensor* rows, int product) const {
    for (const ggml_tensor* t = rows; t != nullptr && graph_.index_of(t) > from_; t = t->src[0]) {
      if (picks(t)) return true;
      const bool passes = t->op == GGML_OP_ADD_ID || t->op == GGML_OP_MUL || t->op == GGML_OP_SCALE ||
                          t->op == GGML_OP_RESHAPE;
      if (!passes) break;
    }
    for (int i = product + 1; i <= paths_.last(); ++i) {
      if (picks(graph_.node(i)) && graph_.index_of(graph_.node(i)->src[1]) == product) return true;
    }
    return false;
  }

  /// Whether a node, -1 for none, and the choice are computed from a common node of this block.
  bool shares_a_source(int node) const {
    if (node <= from_) return false;
    const std::vector<bool> one = graph_.reaching(node, from_);
    const std::vector<bool> other = graph_.reaching(ids_, from_);
    for (size_t i = 0; i < one.size(); ++i) {
      if (one[i] && other[i]) return true;
    }
    return false;
  }

  /// The route from the weights to the sorted ids by which they were read; empty if they were not.
  std::vector<uint8_t> way_to_choice(const ggml_tensor* weights) const {
    std::vector<uint8_t> way;
    for (const ggml_tensor* t = weights; t != nullptr && graph_.index_of(t) > from_; t = t->src[0]) {
      if (t->op == GGML_OP_GET_ROWS) {
        // A per-expert scale is also read by id, but is from the file and does not depend on the token.
        if (graph_.index_of(t->src[1]) != ids_ || !shares_a_source(graph_.index_of(t->src[0]))) return {};
        way.insert(way.end(), {1, 0});
        return way;
      }
      const bool passes = t->op == GGML_OP_RESHAPE || t->op == GGML_OP_SCALE || t->op == GGML_OP_DIV ||
                          t->op == GGML_OP_SOFT_MAX;
      if (!passes) return {};
      way.push_back(0);
    }
    return {};
  }

  const GraphView& graph_;
  int from_;
  GraphPaths paths_;
  int ids_ = -1;  // the node of the chosen experts' ids
};

}  // namespace

Experts find_experts(const GraphView& graph, int from, const TracedNode& output) {
  return ExpertSearch(graph, from, output).find();
}

}  // namespace tapline
