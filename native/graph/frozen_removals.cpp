#include <algorithm>
#include <cstddef>
#include <numeric>

#include "graph/difference.h"
#include "graph/transcoder_edges.h"

namespace tapline {

namespace {

/// Changes of the stream that removals make, taken upwards.
template <class T>
class Ascent {
 public:
  Ascent(const ReplacedBlocks<T>& replaced, const std::vector<GraphTarget>& targets,
         const std::vector<size_t>& nodes, const std::vector<size_t>& removed, ThreadTeam& team)
      : replaced_(replaced),
        blocks_(replaced.blocks),
        targets_(targets),
        nodes_(nodes),
        removed_(removed),
        offsets_(replaced.offsets()),
        team_(team),
        order_(removed.size()),
        changes_(removed.size() * blocks_.last.size(), T{0}),
        found_(removed.size() * (targets.size() + nodes.size())) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return nodes[removed[a]] < nodes[removed[b]]; });
  }

  void pass(size_t layer) {
    if (count_ > 0) {
      std::vector<T> before;
      if (blocks_.parallel) before = changes_;
      blocks_.template frozen_attention<T>(layer, team_)
          .push(changes_, static_cast<int>(count_), blocks_.weights, team_);
      const std::vector<T>& read = blocks_.parallel ? before : changes_;
      read_features(layer, read);
      pass_skip(layer, read);
    }
    write(layer);
  }

  std::vector<double> finish() {
    const auto hidden = static_cast<size_t>(blocks_.hidden());
    for (size_t i = 0; i < count_; ++i) {
      for (size_t target = 0; target < targets_.size(); ++target) {
        const T* change =
            changes_.data() + i * blocks_.last.size() + static_cast<size_t>(targets_[target].token) * hidden;
        loss(i, target) = -dot(change, targets_[target].direction.data(), blocks_.hidden());
      }
    }
    return std::move(found_);
  }

 private:
  double& loss(size_t i, size_t row) { return found_[order_[i] * (targets_.size() + nodes_.size()) + row]; }
  /// The first node of a layer.
  size_t first_of(size_t layer) const {
    return static_cast<size_t>(std::lower_bound(nodes_.begin(), nodes_.end(), offsets_[layer]) -
                               nodes_.begin());
  }
  std::vector<int> tokens() const {
    std::vector<int> at;
    for (size_t i = 0; i < count_; ++i) {
      for (int token = 0; token < blocks_.tokens; ++token) at.push_back(token);
    }
    return at;
  }
  std::vector<T> started(const std::vector<T>& changes) const {
    return {changes.begin(), changes.begin() + static_cast<ptrdiff_t>(count_ * blocks_.last.size())};
  }

  void read_features(size_t layer, const std::vector<T>& read) {
    const size_t first = first_of(layer);
    std::vector<size_t> which;
    for (size_t node = first; node < first_of(layer + 1); ++node)
      which.push_back(nodes_[node] - offsets_[layer]);
    if (which.empty()) return;
    const FrozenTranscoder<T>& transcoder = replaced_.transcoders[layer];
    std::vector<T> changes = started(read);
    transcoder.push_to_features(changes, tokens(), blocks_.weights, team_);
    std::vector<double> constants;
    const std::vector<T> encoders = transcoder.encoder_rows(which, constants);
    const auto hidden = static_cast<size_t>(blocks_.hidden());
    for (size_t i = 0; i < count_; ++i) {
      for (size_t k = 0; k < which.size(); ++k) {
        const T* change = changes.data() + i * blocks_.last.size() +
                          static_cast<size_t>(transcoder.token(which[k])) * hidden;
        loss(i, targets_.size() + first + k) = -dot(change, encoders.data() + k * hidden, blocks_.hidden());
      }
    }
  }

  void pass_skip(size_t layer, const std::vector<T>& read) {
    if (!replaced_.transcoders[layer].has_skip()) return;
    std::vector<T> made = started(read);
    replaced_.transcoders[layer].push_through_skip(made, tokens(), blocks_.weights, team_);
    for (size_t k = 0; k < made.size(); ++k) changes_[k] += made[k];
  }

  /// Takes what removed features wrote into a layer's output out of it.
  void write(size_t layer) {
    while (count_ < order_.size() && nodes_[removed_[order_[count_]]] < offsets_[layer + 1]) ++count_;
    const auto hidden = static_cast<size_t>(blocks_.hidden());
    std::vector<float> row(hidden);
    for (size_t i = 0; i < count_; ++i) {
      const size_t node = nodes_[removed_[order_[i]]];
      const auto above = std::upper_bound(offsets_.begin(), offsets_.end(), node);
      const auto from = static_cast<size_t>(above - offsets_.begin()) - 1;
      const FrozenTranscoder<T>& transcoder = replaced_.transcoders[from];
      if (!transcoder.writes_into(layer)) continue;
      const size_t one = node - offsets_[from];
      transcoder.written(one, layer, row.data());
      T* change =
          changes_.data() + i * blocks_.last.size() + static_cast<size_t>(transcoder.token(one)) * hidden;
      for (size_t k = 0; k < hidden; ++k)
        change[k] -= static_cast<T>(transcoder.activations()[one]) * static_cast<T>(row[k]);
    }
  }

  const ReplacedBlocks<T>& replaced_;
  const FrozenBlocks& blocks_;
  const std::vector<GraphTarget>& targets_;
  const std::vector<size_t>& nodes_;
  const std::vector<size_t>& removed_;
  std::vector<size_t> offsets_;
  ThreadTeam& team_;
  std::vector<size_t> order_;
  size_t count_ = 0;
  std::vector<T> changes_;  // [removed in order, tokens, hidden]
  std::vector<double> found_;
};

}  // namespace

template <class T>
std::vector<double> frozen_removals(const ReplacedBlocks<T>& replaced,
                                    const std::vector<GraphTarget>& targets, const std::vector<size_t>& nodes,
                                    const std::vector<size_t>& removed, ThreadTeam& team,
                                    const CancelToken& cancel) {
  Ascent<T> ascent(replaced, targets, nodes, removed, team);
  for (size_t layer = 0; !removed.empty() && layer < replaced.blocks.layers(); ++layer) {
    cancel.check();
    ascent.pass(layer);
  }
  return ascent.finish();
}

template std::vector<double> frozen_removals(const ReplacedBlocks<float>&, const std::vector<GraphTarget>&,
                                             const std::vector<size_t>&, const std::vector<size_t>&,
                                             ThreadTeam&, const CancelToken&);
template std::vector<double> frozen_removals(const ReplacedBlocks<double>&, const std::vector<GraphTarget>&,
                                             const std::vector<size_t>&, const std::vector<size_t>&,
                                             ThreadTeam&, const CancelToken&);

}  // namespace tapline
