#include "experiment/transcoder_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "experiment/checks.h"
#include "experiment/frozen_pass.h"

namespace tapline {

namespace {

// Of the edges, in bytes.
constexpr size_t kMostBytes = size_t{8} << 30;

std::string name_of(const TranscoderGraph& found, size_t node) {
  return "feature " + std::to_string(found.features[node]) + " of block " +
         std::to_string(found.layers[node]) + " at token " + std::to_string(found.tokens[node]);
}

class Run {
 public:
  Run(Passes& passes, const TranscoderGraphRequest& request, const CancelToken& cancel)
      : passes_(passes), request_(request), cancel_(cancel), n_(request.tokens.size()) {
    check();
  }

  template <class T>
  TranscoderGraph run(const CountProgress& progress) {
    TranscoderGraph found;
    found.bytes = bytes(sizeof(T));
    if (request_.estimate) return found;
    const Passes::ClearAtEnd clear{passes_};
    std::vector<int> reading;
    for (const LayerTranscoder& one : request_.transcoders) {
      if (one.point == Point::kFfnIn) reading.push_back(one.layer);
    }
    const FrozenRows rows = frozen_rows(passes_, request_.tokens, /*written=*/false, cancel_, reading);
    const WeightFile weights(passes_.model());
    const FrozenBlocks blocks = frozen_blocks(passes_, weights, rows);
    const std::vector<GraphTarget> targets =
        graph_targets(passes_, weights, request_.targets, rows.last, cancel_);
    ThreadTeam team(passes_.n_threads());
    const FrozenBounds bounds = frozen_bounds(passes_, /*mlps=*/false);
    const std::vector<FrozenTranscoder<T>> transcoders = replace<T>(blocks, team);
    for (const FrozenTranscoder<T>& one : transcoders) found.ffn_in_apart.push_back(one.apart());
    check_apart("MLP's input", found.ffn_in_apart, bounds.apart);
    const ReplacedBlocks<T> replaced{blocks, transcoders};
    found.edges = transcoder_edges(replaced, targets, request_.nodes, team, cancel_, progress);
    check_apart("attention", found.edges.apart, bounds.apart);
    describe(replaced, found);
    check_sums(found.edges.values, found.edges.residuals, bounds.residual, targets.size(),
               [&](size_t node) { return name_of(found, node); });
    follow_paths(found);
    try_nodes(replaced, targets, found, team);
    check_removals(found, bounds.residual);
    found.apart_bound = bounds.apart;
    found.residual_bound = bounds.residual;
    return found;
  }

 private:
  void check() const {
    check_graph(passes_, request_.tokens, request_.targets, /*mlps=*/false);
    int last = -1;
    for (const LayerTranscoder& one : request_.transcoders) {
      if (one.layer <= last || static_cast<size_t>(one.layer) >= layers())
        throw_error(ErrorCode::kInvalidArgument, "Transcoders must be of ascending layers up to ",
                    layers() - 1, ", got ", one.layer, ".");
      last = one.layer;
      check_transcoder(one);
    }
    const size_t edges = edge_bytes();
    if (edges > kMostBytes)
      throw_error(ErrorCode::kInvalidArgument, "The edges of ", nodes(), " of ", active(),
                  " active features at ", n_, " tokens would need ", edges >> 20, " MiB, at most ",
                  kMostBytes >> 20, "; choose fewer nodes.");
  }

  void check_transcoder(const LayerTranscoder& one) const {
    const auto layer = static_cast<size_t>(one.layer);
    const ResidualStream& stream = passes_.stream();
    if (one.point == Point::kFfnIn) {
      check_place(passes_, {one.layer, Point::kFfnIn});
      if (!stream.ffn_inputs[layer].why.empty())
        throw Error(ErrorCode::kUnsupportedArchitecture, stream.ffn_inputs[layer].why);
    } else if (one.point != (stream.points.parallel ? Point::kBlockIn : Point::kMid)) {
      throw_error(ErrorCode::kInvalidArgument, "The transcoder of block ", layer, " reads ",
                  name_of(one.point), "; graphs need the MLP's input.");
    }
    const TranscoderUse& use = one.use;
    if (static_cast<size_t>(use.layout.hidden) != width())
      throw_error(ErrorCode::kInvalidArgument, "The transcoder of block ", layer, " has rows of ",
                  use.layout.hidden, ", the model of ", width(), ".");
    if (use.layout.blocks < 1 || layer + static_cast<size_t>(use.layout.blocks) > layers())
      throw_error(ErrorCode::kInvalidArgument, "The transcoder of block ", layer, " writes into ",
                  use.layout.blocks, " blocks from its own on; the model has ", layers(), " blocks.");
    if (use.layout.scaling == dictionaries::RowScaling::kLayerNorm)
      throw_error(ErrorCode::kInvalidArgument, "The transcoder of block ", layer,
                  " centres and scales each row, which graphs do not support.");
    const bool sound =
        use.tokens.size() == use.features.size() && std::is_sorted(use.tokens.begin(), use.tokens.end()) &&
        (use.tokens.empty() ||
         (use.tokens.front() >= request_.zeros && static_cast<size_t>(use.tokens.back()) < n_)) &&
        std::all_of(use.features.begin(), use.features.end(),
                    [&](int32_t feature) { return feature >= 0 && feature < use.layout.features; });
    if (!sound)
      throw_error(ErrorCode::kInvalidArgument, "The active features of block ", layer, " are not valid.");
  }

  size_t width() const { return static_cast<size_t>(passes_.info().n_embd); }
  size_t layers() const { return static_cast<size_t>(passes_.info().n_layer); }
  size_t active() const {
    return std::accumulate(
        request_.transcoders.begin(), request_.transcoders.end(), size_t{0},
        [](size_t sum, const LayerTranscoder& one) { return sum + one.use.features.size(); });
  }
  size_t nodes() const { return std::min(request_.nodes, active()); }
  size_t edge_bytes() const {
    return transcoder_edge_bytes(request_.targets.size() + nodes(), active(), layers(), n_);
  }

  /// What is in memory at once, of numbers of `size` bytes.
  size_t bytes(size_t size) const {
    size_t heads = 0;
    size_t patterns = 0;
    for (const AttentionPath& attention : passes_.stream().attention_paths) {
      heads =
          std::max(heads, static_cast<size_t>(attention.heads) * static_cast<size_t>(attention.head_width));
      patterns += static_cast<size_t>(attention.heads) * n_ * n_ * sizeof(float);
    }
    std::vector<size_t> writing(layers(), 0);  // active features, by the block that they write into
    bool skips = false;
    for (const LayerTranscoder& one : request_.transcoders) {
      const auto from = writing.begin() + one.layer;
      std::for_each(from, from + one.use.layout.blocks,
                    [&](size_t& count) { count += one.use.features.size(); });
      skips = skips || one.use.layout.skip > 0;
    }
    const size_t pass = layers() * n_ * (4 * width() + heads) * sizeof(float) + patterns;
    const size_t left = layers() * n_ * 4 * width() * size;
    const size_t weights = (4 * heads + (skips ? width() : 0)) * width() * (size + sizeof(float));
    // Those of a block, and a token's before they are arranged.
    const size_t writings = 2 * *std::max_element(writing.begin(), writing.end()) * width() * size;
    const size_t together = transcoder_rows_together(n_);
    const size_t batch = (together * width() + 1024 * (4 * width() + 3 * heads)) * size;
    const size_t removals = request_.tried * (n_ * 3 * (width() + heads) * size + nodes() * sizeof(double));
    return pass + left + weights + writings + batch + removals + edge_bytes();
  }

  template <class T>
  std::vector<FrozenTranscoder<T>> replace(const FrozenBlocks& blocks, ThreadTeam& team) const {
    std::vector<FrozenTranscoder<T>> found;
    found.reserve(layers());
    size_t next = 0;
    for (size_t layer = 0; layer < layers(); ++layer) {
      cancel_.check();
      const bool has = next < request_.transcoders.size() &&
                       static_cast<size_t>(request_.transcoders[next].layer) == layer;
      const TranscoderUse* use = has ? &request_.transcoders[next++].use : nullptr;
      const std::vector<T> stream = blocks.mlp_input<T>(layer);
      FrozenTranscoder<T> one(use, passes_.stream().ffn_inputs[layer].steps, blocks.weights, stream,
                              blocks.rows[layer], found, blocks.tokens, request_.zeros, team);
      found.push_back(std::move(one));
    }
    return found;
  }

  template <class T>
  void describe(const ReplacedBlocks<T>& replaced, TranscoderGraph& found) const {
    const std::vector<size_t> offsets = replaced.offsets();
    for (const size_t node : found.edges.nodes) {
      const auto above = std::upper_bound(offsets.begin(), offsets.end(), node);
      const auto layer = static_cast<size_t>(above - offsets.begin()) - 1;
      const FrozenTranscoder<T>& transcoder = replaced.transcoders[layer];
      const size_t one = node - offsets[layer];
      found.layers.push_back(static_cast<int32_t>(layer));
      found.tokens.push_back(transcoder.token(one));
      found.features.push_back(transcoder.feature(one));
      found.activations.push_back(transcoder.activations()[one]);
    }
  }

  /// What comes through each node and from each start on all paths between nodes: nodes change in proportion
  /// to their values. Edges lead upwards, so one pass down over the nodes is enough.
  void follow_paths(TranscoderGraph& found) const {
    const size_t targets = request_.targets.size();
    const size_t count = found.edges.nodes.size();
    const size_t columns = found.edges.columns;
    const size_t starting = columns - count;
    found.relevances.resize(count * targets);
    for (size_t target = 0; target < targets; ++target) {
      const float* own = found.edges.parts.data() + target * columns;
      std::vector<double> sums(own, own + columns);
      for (size_t node = count; node-- > 0;) {
        const double relevance = sums[n_ + node];
        found.relevances[node * targets + target] = relevance;
        if (relevance == 0 || found.activations[node] == 0) continue;
        const double share = relevance / found.activations[node];
        const float* parts = found.edges.parts.data() + (targets + node) * columns;
        for (size_t column = 0; column < columns; ++column)
          sums[column] += share * static_cast<double>(parts[column]);
      }
      sums.erase(sums.begin() + static_cast<ptrdiff_t>(n_),
                 sums.begin() + static_cast<ptrdiff_t>(n_ + count));
      found.starts.insert(found.starts.end(), sums.begin(), sums.begin() + static_cast<ptrdiff_t>(starting));
    }
  }

  template <class T>
  void try_nodes(const ReplacedBlocks<T>& replaced, const std::vector<GraphTarget>& targets,
                 TranscoderGraph& found, ThreadTeam& team) const {
    found.tried.resize(found.edges.nodes.size());
    std::iota(found.tried.begin(), found.tried.end(), 0);
    std::stable_sort(found.tried.begin(), found.tried.end(), [&](size_t a, size_t b) {
      return std::abs(found.relevances[a * targets.size()]) > std::abs(found.relevances[b * targets.size()]);
    });
    found.tried.resize(std::min(request_.tried, found.tried.size()));
    const std::vector<size_t> offsets = replaced.offsets();
    std::vector<float> row(width());
    for (const size_t node : found.tried) {
      const auto own = static_cast<size_t>(found.layers[node]);
      const FrozenTranscoder<T>& transcoder = replaced.transcoders[own];
      std::vector<float>& loss = found.losses.emplace_back();
      for (size_t layer = own; transcoder.writes_into(layer); ++layer) {
        transcoder.written(found.edges.nodes[node] - offsets[own], layer, row.data());
        for (const float value : row)
          loss.push_back(static_cast<float>(-found.activations[node] * static_cast<double>(value)));
      }
    }
    found.frozen = frozen_removals(replaced, targets, found.edges.nodes, found.tried, team, cancel_);
  }

  void check_removals(const TranscoderGraph& found, double bound) const {
    const size_t rows = request_.targets.size() + found.edges.nodes.size();
    for (size_t i = 0; i < found.tried.size(); ++i) {
      double most = 0;
      double apart = 0;
      size_t where = 0;
      for (size_t row = 0; row < rows; ++row) {
        const auto edge =
            static_cast<double>(found.edges.parts[row * found.edges.columns + n_ + found.tried[i]]);
        most = std::max(most, std::abs(edge));
        if (std::abs(found.frozen[i * rows + row] - edge) <= apart) continue;
        apart = std::abs(found.frozen[i * rows + row] - edge);
        where = row;
      }
      if (apart <= bound * most) continue;
      throw_error(
          ErrorCode::kCompute, "Removing ", name_of(found, found.tried[i]),
          " in the frozen model does not change ",
          name_of_row(where, request_.targets.size(), [&](size_t node) { return name_of(found, node); }),
          " by its edge: the difference is ", two_digits(apart), ", the largest edge ", two_digits(most),
          ".");
    }
  }

  Passes& passes_;
  const TranscoderGraphRequest& request_;
  const CancelToken& cancel_;
  size_t n_;
};

}  // namespace

TranscoderGraph transcoder_graph(Passes& passes, const TranscoderGraphRequest& request,
                                 const CancelToken& cancel, const CountProgress& progress) {
  const auto locked = passes.lock();
  Run run(passes, request, cancel);
  return request.precise ? run.run<double>(progress) : run.run<float>(progress);
}

}  // namespace tapline
