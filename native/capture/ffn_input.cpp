#include "capture/ffn_input.h"

#include <algorithm>
#include <vector>

namespace tapline {

namespace {

/// Whether a node only selects or reshapes rows.
bool keeps_rows(const ggml_tensor* t, int n_embd) {
  return (t->op == GGML_OP_GET_ROWS || t->op == GGML_OP_RESHAPE || t->op == GGML_OP_CONT) &&
         t->ne[0] == n_embd;
}

/// Whether a node applies a norm's weight or bias to `rows`.
bool applies_weight(const GraphView& graph, const ggml_tensor* t, const ggml_tensor* rows) {
  return (t->op == GGML_OP_MUL || t->op == GGML_OP_ADD) && t->src[0] == rows &&
         graph.index_of(t->src[1]) < 0 && t->src[1]->ne[0] == rows->ne[0] && ggml_nrows(t->src[1]) == 1;
}

}  // namespace

FfnInput find_ffn_input(const GraphView& graph, const Block& parts, int n_embd) {
  const int start = parts.mid.node >= 0 ? parts.mid.node : parts.in.node;
  const int end = parts.ffn.node;
  const std::vector<bool> before_end = graph.reaching(end, start);
  // The nodes towards the end that read a node.
  const auto readers = [&](int of) {
    std::vector<int> found;
    for (int i = of + 1; i <= end; ++i) {
      bool reads = false;
      graph.each_source(i, [&](const ggml_tensor* source) { reads = reads || graph.index_of(source) == of; });
      if (reads && before_end[static_cast<size_t>(i)]) found.push_back(i);
    }
    return found;
  };
  // Every path to the end goes through a node that is the only reader of the one before.
  int at = start;
  bool normed = false;
  std::vector<int> next = readers(at);
  for (; next.size() == 1; next = readers(at)) {
    const ggml_tensor* t = graph.node(next[0]);
    const bool steps =
        normed ? applies_weight(graph, t, graph.node(at)) : is_norm(t) || keeps_rows(t, n_embd);
    if (!steps) break;
    normed = normed || is_norm(t);
    at = next[0];
  }
  if (!normed) {
    const bool several = next.size() > 1 && std::all_of(next.begin(), next.end(), [&](int reader) {
                           return is_norm(graph.node(reader));
                         });
    return {{},
            several ? "reads several norms of the stream in its MLP"
                    : "has an MLP that reads the stream without a norm"};
  }
  if (graph.reaching(parts.attn.node, start)[static_cast<size_t>(at)])
    return {{}, "has one norm for attention and MLP, so a change there would change both"};
  return {GraphPaths(graph, start, parts.ffn).trace(at), {}};
}

}  // namespace tapline
