#include "graph/direct_edges.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "graph/difference.h"

namespace tapline {

namespace {

// Rows of the residual stream that one batch takes through the blocks: enough for full speed, few enough that
// a block takes well under a second.
constexpr size_t kMostRows = 4096;

/// A group of rows of the matrix, taken down through the blocks together. They are sorted from the highest
/// start on; those that started so far are the first `count_`.
template <class T>
class EdgeDescent {
 public:
  EdgeDescent(const FrozenBlocks& blocks, const std::vector<GraphTarget>& targets, const GraphNodes<T>& nodes,
              const std::vector<size_t>& members, ThreadTeam& team, DirectEdges& found)
      : blocks_(blocks),
        targets_(targets),
        nodes_(nodes),
        members_(members),
        team_(team),
        found_(found),
        rows_(members.size() * blocks.last.size(), T{0}),
        parts_(members.size() * found.columns),
        constants_(members.size()) {}

  /// Where a row starts: 3 * layer, and 2 at the middle of a block, 1 at its heads, 0 at its input.
  static int start(const FrozenBlocks& blocks, size_t targets, const GraphNodes<T>& nodes, size_t row) {
    if (row < targets) return 3 * static_cast<int>(blocks.layers());
    const GraphNode& node = nodes.nodes[row - targets];
    return 3 * node.layer + (node.head ? 1 : blocks.parallel ? 0 : 2);
  }

  void pass(size_t layer) {
    const int at = 3 * static_cast<int>(layer);
    begin(at + 3);
    take_neurons(layer);
    begin(at + 2);
    take_attention(layer);
    begin(at);
  }

  void finish() {
    each_row([&](size_t i, size_t token, const T* function) {
      part(i, token) = dot(function, row_of(blocks_.rows.front().input, token), blocks_.hidden());
    });
    for (size_t i = 0; i < members_.size(); ++i) {
      const size_t row = members_[i];
      double sum = constants_[i];
      double squares = sum * sum + found_.values[row] * found_.values[row];
      for (size_t k = 0; k < found_.columns; ++k) {
        sum += part(i, k);
        squares += part(i, k) * part(i, k);
        found_.parts[row * found_.columns + k] = static_cast<float>(part(i, k));
      }
      found_.constants[row] = constants_[i];
      found_.residuals[row] = squares == 0 ? 0 : std::abs(sum - found_.values[row]) / std::sqrt(squares);
    }
  }

 private:
  double& part(size_t i, size_t column) { return parts_[i * found_.columns + column]; }
  size_t node_column(size_t node) const { return static_cast<size_t>(blocks_.tokens) + node; }
  size_t rest_column(size_t layer, size_t token, bool rounding) const {
    const size_t at = layer + (rounding ? blocks_.layers() : 0);
    return node_column(nodes_.nodes.size()) + at * static_cast<size_t>(blocks_.tokens) + token;
  }
  const float* row_of(const std::vector<float>& rows, size_t token) const {
    return rows.data() + token * static_cast<size_t>(blocks_.hidden());
  }

  template <class Take>
  void each_row(const Take& take) {
    team_.parallel_for(static_cast<int>(count_), [&](int i) {
      const T* function = rows_.data() + static_cast<size_t>(i) * blocks_.last.size();
      for (size_t token = 0; token < static_cast<size_t>(blocks_.tokens); ++token)
        take(static_cast<size_t>(i), token, function + token * static_cast<size_t>(blocks_.hidden()));
    });
  }

  bool starts(size_t i, int at) const {
    return i < members_.size() && start(blocks_, targets_.size(), nodes_, members_[i]) == at;
  }

  /// Starts targets or neurons.
  void begin(int at) {
    for (; starts(count_, at); ++count_) {
      const size_t row = members_[count_];
      T* to = rows_.data() + count_ * blocks_.last.size();
      const auto hidden = static_cast<size_t>(blocks_.hidden());
      if (row < targets_.size()) {
        const GraphTarget& target = targets_[row];
        const auto token = static_cast<size_t>(target.token);
        std::copy(target.direction.begin(), target.direction.end(), to + token * hidden);
        constants_[count_] = target.constant;
        found_.values[row] =
            target.constant + dot(target.direction.data(), row_of(blocks_.last, token), blocks_.hidden());
      } else {
        const size_t node = row - targets_.size();
        const GraphNode& neuron = nodes_.nodes[node];
        std::copy(nodes_.reads[node].begin(), nodes_.reads[node].end(),
                  to + static_cast<size_t>(neuron.token) * hidden);
        constants_[count_] = nodes_.constants[node];
        found_.values[row] = neuron.value;
      }
    }
  }

  void take_neurons(size_t layer) {
    const typename GraphNodes<T>::Block& block = nodes_.blocks[layer];
    const int hidden = blocks_.hidden();
    std::vector<std::vector<size_t>> at(static_cast<size_t>(blocks_.tokens));  // nodes by token
    for (size_t node = 0; node < nodes_.nodes.size(); ++node) {
      const GraphNode& one = nodes_.nodes[node];
      if (!one.head && static_cast<size_t>(one.layer) == layer)
        at[static_cast<size_t>(one.token)].push_back(node);
    }
    each_row([&](size_t i, size_t token, const T* function) {
      const size_t row = token * static_cast<size_t>(hidden);
      for (const size_t node : at[token])
        part(i, node_column(node)) = dot(function, nodes_.writes[node].data(), hidden);
      part(i, rest_column(layer, token, false)) = dot(function, block.rest.data() + row, hidden);
      part(i, rest_column(layer, token, true)) += dot(function, block.rounding.data() + row, hidden);
      constants_[i] += dot(function, block.constants.data() + row, hidden);
    });
  }

  void take_attention(size_t layer) {
    const int at = 3 * static_cast<int>(layer) + 1;
    const size_t above = count_;
    while (starts(count_, at)) ++count_;
    if (count_ == 0) return;
    const FrozenAttention<T> attention = blocks_.frozen_attention<T>(layer, team_);
    const auto n = static_cast<size_t>(blocks_.tokens);
    std::vector<double> rounding(count_ * n);
    attention.pull_back(rows_, static_cast<int>(count_),
                        {nullptr, nullptr, rounding.data(), constants_.data()}, nullptr, team_,
                        [&](std::vector<T>& read) { at_heads(layer, above, read); });
    for (size_t i = 0; i < count_; ++i) {
      for (size_t token = 0; token < n; ++token)
        part(i, rest_column(layer, token, true)) += rounding[i * n + token];
    }
  }

  /// Heads that are nodes are parts of the rows above, and start their own.
  void at_heads(size_t layer, size_t above, std::vector<T>& read) {
    const AttentionPath& path = blocks_.attention[layer];
    const auto width = static_cast<size_t>(path.head_width);
    const size_t all = static_cast<size_t>(path.heads) * width;
    const auto place = [&](const GraphNode& head) {
      return static_cast<size_t>(head.token) * all + static_cast<size_t>(head.index) * width;
    };
    const std::vector<float>& heads = blocks_.rows[layer].heads;
    for (size_t node = 0; node < nodes_.nodes.size(); ++node) {
      const GraphNode& head = nodes_.nodes[node];
      if (!head.head || static_cast<size_t>(head.layer) != layer) continue;
      team_.parallel_for(static_cast<int>(above), [&](int one) {
        const auto i = static_cast<size_t>(one);
        T* function = read.data() + i * static_cast<size_t>(blocks_.tokens) * all + place(head);
        part(i, node_column(node)) = dot(function, heads.data() + place(head), path.head_width);
        std::fill_n(function, width, T{0});
      });
    }
    for (size_t i = above; i < count_; ++i) {
      const size_t row = members_[i];
      const size_t node = row - targets_.size();
      std::copy(nodes_.reads[node].begin(), nodes_.reads[node].end(),
                read.data() + i * static_cast<size_t>(blocks_.tokens) * all + place(nodes_.nodes[node]));
      found_.values[row] = nodes_.nodes[node].value;
    }
  }

  const FrozenBlocks& blocks_;
  const std::vector<GraphTarget>& targets_;
  const GraphNodes<T>& nodes_;
  const std::vector<size_t>& members_;
  ThreadTeam& team_;
  DirectEdges& found_;
  size_t count_ = 0;
  std::vector<T> rows_;        // [members, tokens, hidden]
  std::vector<double> parts_;  // [members, columns]
  std::vector<double> constants_;
};

}  // namespace

template <class T>
DirectEdges direct_edges(const FrozenBlocks& blocks, const std::vector<GraphTarget>& targets,
                         const GraphNodes<T>& nodes, ThreadTeam& team, const CancelToken& cancel,
                         const std::function<void(size_t, size_t)>& progress) {
  const auto n = static_cast<size_t>(blocks.tokens);
  const size_t layers = blocks.layers();
  const size_t count = targets.size() + nodes.nodes.size();
  DirectEdges found;
  found.columns = n + nodes.nodes.size() + 2 * layers * n;
  found.parts.resize(count * found.columns);
  for (std::vector<double>* list : {&found.values, &found.constants, &found.residuals}) list->resize(count);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const auto start = [&](size_t row) { return EdgeDescent<T>::start(blocks, targets.size(), nodes, row); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return start(a) > start(b); });
  const size_t most = std::max<size_t>(1, kMostRows / n);
  const size_t batches = (count + most - 1) / most;
  for (size_t batch = 0; batch < batches; ++batch) {
    const auto from = order.begin() + static_cast<ptrdiff_t>(batch * most);
    const std::vector<size_t> members(from,
                                      from + static_cast<ptrdiff_t>(std::min(most, count - batch * most)));
    EdgeDescent<T> descent(blocks, targets, nodes, members, team, found);
    const auto top = std::min(layers, static_cast<size_t>(start(members.front())) / 3 + 1);
    for (size_t layer = top; layer-- > 0;) {
      cancel.check();
      descent.pass(layer);
      progress(batch * layers + layers - layer, batches * layers);
    }
    descent.finish();
  }
  return found;
}

template DirectEdges direct_edges(const FrozenBlocks&, const std::vector<GraphTarget>&,
                                  const GraphNodes<float>&, ThreadTeam&, const CancelToken&,
                                  const std::function<void(size_t, size_t)>&);
template DirectEdges direct_edges(const FrozenBlocks&, const std::vector<GraphTarget>&,
                                  const GraphNodes<double>&, ThreadTeam&, const CancelToken&,
                                  const std::function<void(size_t, size_t)>&);

}  // namespace tapline
