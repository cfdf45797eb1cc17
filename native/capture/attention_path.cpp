#include "capture/attention_path.h"

namespace tapline {

namespace {

/// The node whose rows are stored as the values that `values`, a view of a cache, reads; -1: none in this
/// block.
int stored_values(const GraphView& graph, int from, int end, const ggml_tensor* values) {
  const ggml_tensor* cache = values == nullptr ? nullptr : values->view_src;
  if (cache == nullptr || GraphView::original_name(cache).rfind("cache_v", 0) != 0) return -1;
  int found = -1;
  for (int i = from + 1; i < end; ++i) {
    const ggml_tensor* t = graph.node(i);
    if (t->op != GGML_OP_SET_ROWS || t->view_src != cache) continue;
    if (found >= 0) return -1;
    found = graph.index_of(t->src[0]);
  }
  return found;
}

AttentionPath read_path(const GraphView& graph, const Model& model, const BlockPoints& points, int layer,
                        int64_t n_tokens) {
  AttentionPath path;
  const auto at = [&](Point point) -> const Site& { return points.site({layer, point}); };
  for (const Point point : {Point::kBlockIn, Point::kAttnOut}) {
    if (points.at(point).supported) continue;
    path.why = "its " + std::string(name_of(point)) + " is not proven";
    return path;
  }
  for (const Point point : {Point::kAttention, Point::kHeadOut}) {
    if (points.at(point).supported && at(point).node >= 0) continue;
    const std::vector<std::string>& without = points.at(point).without;
    const auto index = static_cast<size_t>(layer);
    path.why = "it " + (index < without.size() && !without[index].empty() ? without[index] : "has no heads");
    return path;
  }
  const int heads_out = at(Point::kHeadOut).node;
  // CONT(PERMUTE(MUL_MAT(values, weights)))
  const ggml_tensor* permuted = graph.node(heads_out)->src[0];
  const ggml_tensor* product = permuted == nullptr ? nullptr : permuted->src[0];
  const bool known = permuted != nullptr && permuted->op == GGML_OP_PERMUTE && product != nullptr &&
                     product->op == GGML_OP_MUL_MAT;
  const int from = at(Point::kBlockIn).node;
  const int stored = known ? stored_values(graph, from, heads_out, product->src[0]) : -1;
  if (stored < 0) {
    path.why = "it reads values that it does not compute from its input and store";
    return path;
  }
  path.heads = at(Point::kHeadOut).heads;
  path.head_width = static_cast<int>(product->ne[0]);
  path.value_heads = static_cast<int>(product->src[0]->ne[2]);
  const StepReader reader(graph, model, n_tokens);
  path.why = reader.read(from, stored, path.values);
  if (path.why.empty()) path.why = reader.read(heads_out, at(Point::kAttnOut).node, path.output);
  if (!path.why.empty()) return path;
  const int values = path.values.empty() ? 0 : path.values.back().out;
  const bool fits = values >= path.value_heads * path.head_width && path.value_heads > 0 &&
                    path.heads % path.value_heads == 0 && !path.output.empty() &&
                    path.output.front().in == path.heads * path.head_width;
  if (!fits) path.why = "its values and its heads have different sizes";
  return path;
}

}  // namespace

std::vector<AttentionPath> read_attention_paths(const GraphView& graph, const Model& model,
                                                const BlockPoints& points, int64_t n_tokens,
                                                const std::string& subject) {
  return paths_of_blocks(model, subject, "linear path through attention",
                         [&](int layer) { return read_path(graph, model, points, layer, n_tokens); });
}

}  // namespace tapline
