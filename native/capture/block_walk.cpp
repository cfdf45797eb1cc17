#include "capture/block_walk.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace tapline {

namespace {

/// Whether a node mixes tokens, through a memory or by an operation over tokens.
bool mixes_tokens(const GraphView& graph, int index) {
  const ggml_tensor* t = graph.node(index);
  switch (t->op) {
    case GGML_OP_FLASH_ATTN_EXT:
    case GGML_OP_SSM_CONV:
    case GGML_OP_SSM_SCAN:
    case GGML_OP_RWKV_WKV6:
    case GGML_OP_RWKV_WKV7:
    case GGML_OP_GATED_LINEAR_ATTN:
    case GGML_OP_GATED_DELTA_NET:
      return true;
    case GGML_OP_SOFT_MAX:
      if (t->src[1] != nullptr) return true;  // with a mask, unlike the choice of experts
      break;
    default:
      break;
  }
  bool memory = false;
  graph.each_source(index, [&](const ggml_tensor* source) {
    memory = memory || GraphView::original_name(source).rfind("cache_", 0) == 0;
  });
  return memory;
}

/// Two summands.
struct Sum {
  TracedNode one;
  TracedNode other;
};

/// A sum, as the residual stream and the output that is added to it.
struct Addition {
  TracedNode trunk;
  TracedNode branch;
};

class BlockWalk {
 public:
  BlockWalk(const GraphView& graph, int from, int to, int n_embd, bool (*is_token_leaf)(const ggml_tensor*))
      : graph_(graph),
        from_(from),
        to_(to),
        n_embd_(n_embd),
        is_token_leaf_(is_token_leaf),
        flows_(flow(from)) {}

  Block walk() const {
    const TracedNode out = rest_of({to_, {}});
    const auto last = addition(out);
    const auto first = last ? addition(last->trunk) : std::nullopt;
    const char* const more = "changes the residual stream by more than two additions";
    if (!first) {
      Block both = parallel(out);
      if (both.why.empty() || !last) return both;
      if (!is_start(last->trunk.node)) return refused(more);
      return refused("adds to the residual stream only once, so it does not have two halves", last->trunk);
    }
    if (!is_start(first->trunk.node))
      return refused(addition(first->trunk) ? "adds to the residual stream more than twice" : more);
    if (!mixes(first->trunk.node, first->branch.node))
      return refused("has a first half that does not mix tokens, so it is not attention");
    return {first->trunk, first->branch, last->trunk, last->branch, ""};
  }

 private:
  static Block refused(const char* why, const TracedNode& in = {}) { return {in, {}, {}, {}, why}; }

  bool flows(int node) const {
    return node >= begin() && node <= to_ && flows_[static_cast<size_t>(node - begin())];
  }
  int begin() const { return std::max(0, from_); }

  /// For each node of the block, whether it is computed from node `start`, or from the tokens (-1), by a path
  /// that avoids node `around`.
  std::vector<bool> flow(int start, int around = -1) const {
    std::vector<bool> reached(static_cast<size_t>(to_ - begin() + 1), false);
    if (start >= 0) reached[static_cast<size_t>(start - begin())] = true;
    for (int i = start >= 0 ? start + 1 : begin(); i <= to_; ++i) {
      if (i == around) continue;
      graph_.each_source(i, [&](const ggml_tensor* source) {
        const int index = graph_.index_of(source);
        const bool from = index < 0 ? start < 0 && is_token_leaf_(source)
                                    : index >= begin() && reached[static_cast<size_t>(index - begin())];
        if (from) reached[static_cast<size_t>(i - begin())] = true;
      });
    }
    return reached;
  }

  /// Skips operations that only select or reshape rows.
  TracedNode rest_of(TracedNode traced) const {
    while (traced.node >= 0) {
      const ggml_tensor* t = graph_.node(traced.node);
      const bool keeps = t->op == GGML_OP_RESHAPE || t->op == GGML_OP_VIEW || t->op == GGML_OP_CONT ||
                         t->op == GGML_OP_GET_ROWS;
      if (!keeps || t->src[0] == nullptr || t->src[0]->ne[0] != n_embd_) break;
      TracedNode next = traced.source(graph_, 0);
      if (!flows(next.node)) break;
      traced = std::move(next);
    }
    return traced;
  }

  /// Both operands of a sum of rows; nothing for any other node.
  std::optional<Sum> operands(const TracedNode& sum) const {
    if (sum.node < 0) return std::nullopt;
    const ggml_tensor* t = graph_.node(sum.node);
    if (t->op != GGML_OP_ADD || t->src[0] == nullptr || t->src[1] == nullptr) return std::nullopt;
    if (!ggml_are_same_shape(t->src[0], t->src[1]) || t->ne[0] != n_embd_) return std::nullopt;
    Sum both{sum.source(graph_, 0), sum.source(graph_, 1)};
    if (!flows(both.one.node) || !flows(both.other.node) || both.one.node == both.other.node)
      return std::nullopt;
    return both;
  }

  /// Whether all paths from the block's input to its output go through `node`.
  bool is_trunk(int node) const {
    if (node == from_) return true;
    return flows(node) && !flow(from_, node)[static_cast<size_t>(to_ - begin())];
  }

  /// Splits a sum into the residual stream and the addition to it.
  std::optional<Addition> addition(const TracedNode& sum) const {
    const auto both = operands(sum);
    if (!both) return std::nullopt;
    for (const auto& [one, branch] : {*both, Sum{both->other, both->one}}) {
      TracedNode trunk = rest_of(one);
      if (is_trunk(trunk.node)) return Addition{trunk, branch};
    }
    return std::nullopt;
  }

  /// Whether the stream of this block begins here. The input of the first block is computed from embeddings
  /// without additions to them and without mixing tokens.
  bool is_start(int node) const {
    if (from_ >= 0) return node == from_;
    return is_trunk(node) && !addition({node, {}}) && !mixes(-1, node);
  }

  /// Whether `branch`, computed from `trunk`, mixes tokens. Cached K and V are read through views of the
  /// memory, which are not computed from the stream.
  bool mixes(int trunk, int branch) const {
    const std::vector<bool> before = graph_.reaching(branch, trunk);
    for (int i = branch; i > trunk; --i) {
      if (before[static_cast<size_t>(i)] && mixes_tokens(graph_, i)) return true;
    }
    return false;
  }

  /// A block whose output is the sum, in any order, of its input and two outputs that are computed from it.
  Block parallel(const TracedNode& out) const {
    const auto both = operands(out);
    if (!both) return refused("does not end with an addition to the residual stream");
    for (const auto& [sum, other] : {*both, Sum{both->other, both->one}}) {
      const auto inner = operands(rest_of(sum));
      if (!inner) continue;
      if (auto block = of_summands({inner->one, inner->other, other})) return *block;
    }
    return refused("is not the sum of its input and two halves, one of which mixes tokens");
  }

  std::optional<Block> of_summands(const std::array<TracedNode, 3>& summands) const {
    for (size_t i = 0; i < summands.size(); ++i) {
      const TracedNode start = rest_of(summands[i]);
      if (!is_start(start.node)) continue;
      const TracedNode& one = summands[(i + 1) % 3];
      const TracedNode& two = summands[(i + 2) % 3];
      const bool first = mixes(start.node, one.node);
      if (first == mixes(start.node, two.node)) continue;
      return Block{start, first ? one : two, {}, first ? two : one, ""};
    }
    return std::nullopt;
  }

  const GraphView& graph_;
  int from_;
  int to_;
  int n_embd_;
  bool (*is_token_leaf_)(const ggml_tensor*);
  std::vector<bool> flows_;
};

}  // namespace

Block walk_block(const GraphView& graph, int from, int to, int n_embd,
                 bool (*is_token_leaf)(const ggml_tensor*)) {
  return BlockWalk(graph, from, to, n_embd, is_token_leaf).walk();
}

}  // namespace tapline
