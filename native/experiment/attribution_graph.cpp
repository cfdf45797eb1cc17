#include "experiment/attribution_graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include "experiment/checks.h"
#include "experiment/frozen_pass.h"

namespace tapline {

namespace {

// Of the edges, in bytes.
constexpr size_t kMostBytes = size_t{4} << 30;

std::string name_of(const GraphNode& node) {
  return (node.head ? "head " : "neuron ") + std::to_string(node.index) + " of block " +
         std::to_string(node.layer) + " at token " + std::to_string(node.token);
}

class Run {
 public:
  Run(Passes& passes, const AttributionGraphRequest& request, const CancelToken& cancel)
      : passes_(passes), request_(request), cancel_(cancel), n_(request.tokens.size()) {
    check();
  }

  template <class T>
  AttributionGraph run(const CountProgress& progress) {
    AttributionGraph found;
    found.bytes = bytes(sizeof(T));
    if (request_.estimate) return found;
    const Passes::ClearAtEnd clear{passes_};
    const FrozenRows rows = frozen_rows(passes_, request_.tokens, /*written=*/false, cancel_);
    const WeightFile weights(passes_.model());
    const FrozenBlocks blocks = frozen_blocks(passes_, weights, rows);
    const std::vector<GraphTarget> targets =
        graph_targets(passes_, weights, request_.targets, rows.last, cancel_);
    ThreadTeam team(passes_.n_threads());
    const size_t layers = rows.blocks.size();
    GraphNodes<T> nodes =
        find_nodes<T>(blocks, targets, {request_.nodes, request_.tried, request_.first}, team, cancel_,
                      [&](size_t done, size_t) { progress(done, 3 * layers); });
    const FrozenBounds bounds = frozen_bounds(passes_, /*mlps=*/true);
    check_apart("attention", nodes.apart, bounds.apart);
    check_apart("MLP", nodes.ffn_apart, bounds.apart);
    found.edges = direct_edges(blocks, targets, nodes, team, cancel_, [&](size_t done, size_t total) {
      progress(2 * layers + layers * done / total, 3 * layers);
    });
    check_sums(found.edges.values, found.edges.residuals, bounds.residual, targets.size(),
               [&](size_t node) { return name_of(nodes.nodes[node]); });
    found.nodes = std::move(nodes.nodes);
    found.embeddings = std::move(nodes.embeddings);
    found.rounding = std::move(nodes.rounding);
    found.apart = std::move(nodes.apart);
    found.ffn_apart = std::move(nodes.ffn_apart);
    found.tried = std::move(nodes.tried);
    found.losses = std::move(nodes.losses);
    found.apart_bound = bounds.apart;
    found.residual_bound = bounds.residual;
    return found;
  }

 private:
  void check() const {
    check_graph(passes_, request_.tokens, request_.targets, /*mlps=*/true);
    const size_t edges = edge_bytes();
    if (edges > kMostBytes)
      throw_error(ErrorCode::kInvalidArgument, "The edges between ", request_.nodes, " nodes of ", n_,
                  " tokens would need ", edges >> 20, " MiB, at most ", kMostBytes >> 20,
                  "; choose fewer nodes.");
  }

  size_t width() const { return static_cast<size_t>(passes_.info().n_embd); }
  size_t layers() const { return static_cast<size_t>(passes_.info().n_layer); }
  size_t columns() const { return n_ + request_.nodes + 2 * layers() * n_; }
  size_t edge_bytes() const { return (request_.targets.size() + request_.nodes) * columns() * sizeof(float); }

  /// What is in memory at once, of numbers of `size` bytes.
  size_t bytes(size_t size) const {
    const ResidualStream& stream = passes_.stream();
    size_t heads = 0;
    size_t patterns = 0;
    size_t weights = 0;  // of one block
    size_t neurons = 0;
    for (size_t layer = 0; layer < layers(); ++layer) {
      const AttentionPath& attention = stream.attention_paths[layer];
      const size_t wide = static_cast<size_t>(attention.heads) * static_cast<size_t>(attention.head_width);
      heads = std::max(heads, wide);
      patterns += static_cast<size_t>(attention.heads) * n_ * n_ * sizeof(float);
      neurons = std::max(neurons, static_cast<size_t>(stream.mlp_paths[layer].neurons));
      weights = std::max(
          {weights, 2 * wide * width(), 3 * static_cast<size_t>(stream.mlp_paths[layer].neurons) * width()});
    }
    const size_t pass = layers() * n_ * (3 * width() + heads) * sizeof(float) + patterns;
    const size_t left = layers() * n_ * 3 * width() * size;
    const size_t vectors = request_.nodes * 2 * width() * size;
    const size_t targets = request_.targets.size() * n_ * (2 * width() + 3 * neurons) * size;
    const size_t batch = std::max<size_t>(4096, n_) * (3 * width() + 2 * heads) * size;
    return pass + left + vectors + edge_bytes() + weights * (size + sizeof(float)) + targets + batch;
  }

  Passes& passes_;
  const AttributionGraphRequest& request_;
  const CancelToken& cancel_;
  size_t n_;
};

}  // namespace

AttributionGraph attribution_graph(Passes& passes, const AttributionGraphRequest& request,
                                   const CancelToken& cancel, const CountProgress& progress) {
  const auto locked = passes.lock();
  Run run(passes, request, cancel);
  return request.precise ? run.run<double>(progress) : run.run<float>(progress);
}

}  // namespace tapline
