#include "graph/graph_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "graph/difference.h"

namespace tapline {

namespace {

bool stronger(const GraphNode& a, const GraphNode& b) {
  return a.influence > b.influence;
}

/// Takes all targets' functions down through the blocks, and keeps the strongest of what it passes.
template <class T>
class Search {
 public:
  Search(const FrozenBlocks& blocks, const std::vector<GraphTarget>& targets, const NodeChoice& choice,
         ThreadTeam& team)
      : blocks_(blocks),
        targets_(targets),
        choice_(choice),
        team_(team),
        rows_(targets.size() * blocks.last.size(), T{0}),
        rounding_(targets.size() * static_cast<size_t>(blocks.tokens)),
        constants_(targets.size()),
        directions_(blocks.layers()) {
    const auto hidden = static_cast<size_t>(blocks.hidden());
    for (size_t i = 0; i < targets.size(); ++i) {
      const size_t at = i * blocks.last.size() + static_cast<size_t>(targets[i].token) * hidden;
      std::copy(targets[i].direction.begin(), targets[i].direction.end(),
                rows_.begin() + static_cast<ptrdiff_t>(at));
    }
  }

  void pass(size_t layer, GraphNodes<T>& found) {
    const std::vector<T> below = pass_mlp(layer, found);
    if (!blocks_.parallel) add(below);
    pass_attention(layer, found);
    if (blocks_.parallel) add(below);
  }

  void finish(GraphNodes<T>& found) {
    const auto n = static_cast<size_t>(blocks_.tokens);
    const int hidden = blocks_.hidden();
    for (size_t i = 0; i < count(); ++i) {
      std::vector<double>& embeddings = found.embeddings.emplace_back();
      for (size_t token = 0; token < n; ++token) {
        const size_t at = token * static_cast<size_t>(hidden);
        embeddings.push_back(dot(rows_.data() + i * n * static_cast<size_t>(hidden) + at,
                                 blocks_.rows.front().input.data() + at, hidden));
      }
      const auto from = rounding_.begin() + static_cast<ptrdiff_t>(i * n);
      found.rounding.push_back(std::accumulate(from, from + static_cast<ptrdiff_t>(n), 0.0));
    }
    std::sort(best_.begin(), best_.end(), [](const GraphNode& a, const GraphNode& b) {
      return std::tuple(a.layer, !a.head, a.token, a.index) < std::tuple(b.layer, !b.head, b.token, b.index);
    });
    for (GraphNode& node : best_) {
      std::vector<T>& reads = found.reads.emplace_back();
      if (node.head) {
        const auto width = static_cast<size_t>(blocks_.attention[static_cast<size_t>(node.layer)].head_width);
        const size_t at = place_of(node) * width;
        const auto from = directions_[static_cast<size_t>(node.layer)].begin() + static_cast<ptrdiff_t>(at);
        reads.assign(from, from + static_cast<ptrdiff_t>(width));
        node.value = dot(reads.data(), blocks_.rows[static_cast<size_t>(node.layer)].heads.data() + at,
                         static_cast<int>(width));
      }
    }
    found.nodes = std::move(best_);
  }

 private:
  size_t count() const { return targets_.size(); }
  void add(const std::vector<T>& functions) {
    for (size_t k = 0; k < functions.size(); ++k) rows_[k] += functions[k];
  }
  size_t place_of(const GraphNode& head) const {
    const auto heads = static_cast<size_t>(blocks_.attention[static_cast<size_t>(head.layer)].heads);
    return static_cast<size_t>(head.token) * heads + static_cast<size_t>(head.index);
  }

  std::vector<T> pass_mlp(size_t layer, GraphNodes<T>& found) {
    const FrozenMlp<T> mlp = blocks_.frozen_mlp<T>(layer, team_);
    found.ffn_apart[layer] = mlp.apart();
    const size_t each = mlp.neurons().size();
    const size_t width = each / static_cast<size_t>(blocks_.tokens);
    std::vector<T> parts(count() * each);
    std::vector<T> below = mlp.pull_back(
        rows_, static_cast<int>(count()), rounding_.data(), constants_.data(),
        [&](int one, const T* values) {
          std::copy_n(values, each, parts.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(one) * each));
        },
        team_);
    for (size_t k = 0; k < each; ++k) {
      const auto activation = static_cast<double>(mlp.neurons()[k]);
      consider({false,
                static_cast<int>(layer),
                static_cast<int>(k / width),
                static_cast<int>(k % width),
                activation,
                {},
                0},
               [&](size_t i) { return static_cast<double>(parts[i * each + k]); });
    }
    return below;
  }

  void pass_attention(size_t layer, GraphNodes<T>& found) {
    const FrozenAttention<T> attention = blocks_.frozen_attention<T>(layer, team_);
    found.apart[layer] = attention.apart();
    const auto heads = static_cast<size_t>(blocks_.attention[layer].heads);
    const auto n = static_cast<size_t>(blocks_.tokens);
    std::vector<double> parts(count() * heads * n);
    const auto sum_up = [&](const std::vector<T>& read) {
      std::vector<T>& sum = directions_[layer];
      sum.assign(read.size() / count(), T{0});
      for (size_t i = 0; i < count(); ++i) {
        for (size_t k = 0; k < sum.size(); ++k)
          sum[k] += static_cast<T>(targets_[i].weight) * read[i * sum.size() + k];
      }
    };
    attention.pull_back(rows_, static_cast<int>(count()),
                        {parts.data(), nullptr, rounding_.data(), constants_.data()}, nullptr, team_, sum_up);
    for (size_t k = 0; k < heads * n; ++k) {
      consider({true, static_cast<int>(layer), static_cast<int>(k % n), static_cast<int>(k / n), 0, {}, 0},
               [&](size_t i) { return parts[i * heads * n + k]; });
    }
  }

  template <class Relevance>
  void consider(GraphNode node, const Relevance& relevance) {
    if (node.token < choice_.first || choice_.most == 0) return;
    for (size_t i = 0; i < count(); ++i) node.influence += std::abs(targets_[i].weight * relevance(i));
    const bool full = best_.size() == choice_.most;
    if (node.influence == 0 || (full && node.influence <= best_.front().influence)) return;
    if (full) {
      std::pop_heap(best_.begin(), best_.end(), stronger);
      best_.pop_back();
    }
    for (size_t i = 0; i < count(); ++i) node.relevance.push_back(relevance(i));
    best_.push_back(std::move(node));
    std::push_heap(best_.begin(), best_.end(), stronger);
  }

  const FrozenBlocks& blocks_;
  const std::vector<GraphTarget>& targets_;
  const NodeChoice& choice_;
  ThreadTeam& team_;
  std::vector<T> rows_;  // [targets, tokens, hidden]
  std::vector<double> rounding_;
  std::vector<double> constants_;
  std::vector<std::vector<T>> directions_;  // by layer, of the heads' outputs, [tokens, heads * width]
  std::vector<GraphNode> best_;             // a heap, the weakest first
};

/// The nodes that matter most to the first target.
std::vector<size_t> strongest(const std::vector<GraphNode>& nodes, size_t most) {
  std::vector<size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::abs(nodes[a].relevance.front()) > std::abs(nodes[b].relevance.front());
  });
  order.resize(std::min(most, order.size()));
  return order;
}

/// What a block's nodes read and write, and what is left.
template <class T>
void read_block(const FrozenBlocks& blocks, size_t layer, GraphNodes<T>& found, ThreadTeam& team) {
  const FrozenMlp<T> mlp = blocks.frozen_mlp<T>(layer, team);
  const auto hidden = static_cast<size_t>(blocks.hidden());
  using Neuron = typename FrozenMlp<T>::Neuron;
  std::vector<Neuron> neurons;
  std::vector<size_t> at;
  for (size_t i = 0; i < found.nodes.size(); ++i) {
    const GraphNode& node = found.nodes[i];
    if (node.head || static_cast<size_t>(node.layer) != layer) continue;
    neurons.push_back({node.token, node.index});
    at.push_back(i);
  }
  auto written = mlp.written(team);
  typename GraphNodes<T>::Block& block = found.blocks[layer];
  block = {std::move(written.neurons), std::move(written.constants), std::move(written.rounding)};
  if (neurons.empty()) return;
  std::vector<double> constants;
  const std::vector<T> reads = mlp.readings(neurons, constants, team);
  const std::vector<T> writes = mlp.writings(neurons, team);
  for (size_t i = 0; i < neurons.size(); ++i) {
    const auto row = static_cast<ptrdiff_t>(i * hidden);
    const auto end = row + static_cast<ptrdiff_t>(hidden);
    found.reads[at[i]].assign(reads.begin() + row, reads.begin() + end);
    found.writes[at[i]].assign(writes.begin() + row, writes.begin() + end);
    found.constants[at[i]] = constants[i];
    T* rest = block.rest.data() + static_cast<size_t>(neurons[i].token) * hidden;
    for (size_t k = 0; k < hidden; ++k) rest[k] -= writes[i * hidden + k];
  }
  std::vector<Neuron> tried;
  std::vector<size_t> places;
  for (size_t i = 0; i < found.tried.size(); ++i) {
    const GraphNode& node = found.nodes[found.tried[i]];
    if (node.head || static_cast<size_t>(node.layer) != layer) continue;
    tried.push_back({node.token, node.index});
    places.push_back(i);
  }
  if (tried.empty()) return;
  const std::vector<float> losses = mlp.losses(tried, team);
  for (size_t i = 0; i < tried.size(); ++i) {
    const auto row = losses.begin() + static_cast<ptrdiff_t>(i * hidden);
    found.losses[places[i]].assign(row, row + static_cast<ptrdiff_t>(hidden));
  }
}

}  // namespace

template <class T>
GraphNodes<T> find_nodes(const FrozenBlocks& blocks, const std::vector<GraphTarget>& targets,
                         const NodeChoice& choice, ThreadTeam& team, const CancelToken& cancel,
                         const std::function<void(size_t, size_t)>& progress) {
  const size_t layers = blocks.layers();
  GraphNodes<T> found;
  found.apart.resize(layers);
  found.ffn_apart.resize(layers);
  found.blocks.resize(layers);
  Search<T> search(blocks, targets, choice, team);
  for (size_t layer = layers; layer-- > 0;) {
    cancel.check();
    search.pass(layer, found);
    progress(layers - layer, 2 * layers);
  }
  search.finish(found);
  found.constants.resize(found.nodes.size());
  found.writes.resize(found.nodes.size());
  found.tried = strongest(found.nodes, choice.tried);
  found.losses.resize(found.tried.size());
  for (size_t layer = 0; layer < layers; ++layer) {
    cancel.check();
    read_block(blocks, layer, found, team);
    progress(layers + layer + 1, 2 * layers);
  }
  return found;
}

template GraphNodes<float> find_nodes(const FrozenBlocks&, const std::vector<GraphTarget>&, const NodeChoice&,
                                      ThreadTeam&, const CancelToken&,
                                      const std::function<void(size_t, size_t)>&);
template GraphNodes<double> find_nodes(const FrozenBlocks&, const std::vector<GraphTarget>&,
                                       const NodeChoice&, ThreadTeam&, const CancelToken&,
                                       const std::function<void(size_t, size_t)>&);

}  // namespace tapline
