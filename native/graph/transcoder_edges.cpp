#include "graph/transcoder_edges.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>

#include "graph/difference.h"
#include "graph/edge_matrix.h"

namespace tapline {

namespace {

// Rows of the residual stream for which a block's matrices are dequantised once.
constexpr size_t kMostRows = 8192;
// Rows between two looks at the cancel token.
constexpr size_t kChunkRows = 512;

/// A block's MLP output in parts, token by token: rows of active features, of this block and, across layers,
/// of lower ones, its error and its constants, to be multiplied with many functions.
template <class T>
class Writings {
 public:
  Writings(const ReplacedBlocks<T>& replaced, size_t layer, ThreadTeam& team)
      : transcoders_(replaced.transcoders),
        hidden_(replaced.blocks.hidden()),
        writers_(static_cast<size_t>(replaced.blocks.tokens)),
        products_(writers_.size()) {
    team.parallel_for(replaced.blocks.tokens, [&](int at) {
      const auto token = static_cast<size_t>(at);
      std::vector<Writer>& writers = writers_[token];
      for (size_t from = 0; from <= layer; ++from) {
        const FrozenTranscoder<T>& one = transcoders_[from];
        if (!one.writes_into(layer)) continue;
        const size_t end = one.first_at(at + 1);
        for (size_t i = one.first_at(at); i < end; ++i) writers.push_back({from, i});
      }
      const auto hidden = static_cast<size_t>(hidden_);
      std::vector<float> row(hidden);
      std::vector<T> rows((writers.size() + 2) * hidden);
      auto to = rows.begin();
      for (const Writer& writer : writers) {
        transcoders_[writer.layer].written(writer.feature, layer, row.data());
        to = std::copy(row.begin(), row.end(), to);
      }
      for (const std::vector<T>* list : {&transcoders_[layer].errors(), &transcoders_[layer].constants()})
        to = std::copy_n(list->begin() + static_cast<ptrdiff_t>(token * hidden), hidden, to);
      ThreadTeam alone(1);
      products_[token] = std::make_unique<FixedProduct<T>>(rows.data(), static_cast<int>(writers.size()) + 2,
                                                           hidden_, /*transposed=*/false, alone);
    });
  }

  /// take(function, layer, active feature of it, part), error(function, token, part): each on any thread, and
  /// for a function and token once. Adds the parts of constants to `constants`.
  template <class Take, class Error>
  void apply(const std::vector<T>& functions, int count, const Take& take, const Error& error,
             double* constants, ThreadTeam& team) const {
    const size_t tokens = products_.size();
    const auto hidden = static_cast<size_t>(hidden_);
    std::vector<double> constant(tokens * static_cast<size_t>(count));
    team.parallel_for(static_cast<int>(tokens), [&](int which) {
      const auto token = static_cast<size_t>(which);
      const auto width = static_cast<size_t>(products_[token]->out());
      std::vector<T> at(static_cast<size_t>(count) * hidden);
      std::vector<T> found(static_cast<size_t>(count) * width);
      for (size_t i = 0; i < static_cast<size_t>(count); ++i)
        std::copy_n(functions.data() + (i * tokens + token) * hidden, hidden, at.data() + i * hidden);
      ThreadTeam alone(1);
      products_[token]->apply(at.data(), count, found.data(), alone);
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        const T* parts = found.data() + i * width;
        for (size_t k = 0; k + 2 < width; ++k) {
          const auto& [layer, one] = writers_[token][k];
          take(i, layer, one, static_cast<double>(parts[k]) * transcoders_[layer].activations()[one]);
        }
        error(i, token, static_cast<double>(parts[width - 2]));
        constant[i * tokens + token] = static_cast<double>(parts[width - 1]);
      }
    });
    for (size_t k = 0; k < constant.size(); ++k) constants[k / tokens] += constant[k];
  }

 private:
  struct Writer {
    size_t layer;
    size_t feature;  // among its active ones
  };

  const std::vector<FrozenTranscoder<T>>& transcoders_;
  int hidden_;
  std::vector<std::vector<Writer>> writers_;  // by token
  std::vector<std::unique_ptr<FixedProduct<T>>> products_;
};

/// The weights of one block that all functions of a batch pass through.
template <class T>
struct BlockWeights {
  Writings<T> writings;
  FrozenAttention<T> attention;
  std::unique_ptr<typename FrozenTranscoder<T>::Skip> skip;

  BlockWeights(const ReplacedBlocks<T>& replaced, size_t layer, ThreadTeam& team)
      : writings(replaced, layer, team),
        attention(replaced.blocks.template frozen_attention<T>(layer, team)) {
    if (replaced.transcoders[layer].has_skip())
      skip = std::make_unique<typename FrozenTranscoder<T>::Skip>(replaced.transcoders[layer], team);
  }
};

/// Some rows of the matrix, taken down through the blocks together. They are sorted from the highest start
/// on; those that started so far are the first `count_`.
template <class T>
class Chunk {
 public:
  Chunk(const ReplacedBlocks<T>& replaced, EdgeMatrix& matrix, std::vector<size_t> members, ThreadTeam& team)
      : replaced_(replaced),
        blocks_(replaced.blocks),
        matrix_(matrix),
        members_(std::move(members)),
        team_(team),
        rows_(members_.size() * blocks_.last.size(), T{0}),
        parts_(members_.size() * matrix.columns()),
        constants_(members_.size()) {}

  void begin_targets(const std::vector<GraphTarget>& targets) {
    const auto hidden = static_cast<size_t>(blocks_.hidden());
    for (; count_ < members_.size() && matrix_.is_target(members_[count_]); ++count_) {
      const GraphTarget& target = targets[members_[count_]];
      const size_t at = static_cast<size_t>(target.token) * hidden;
      std::copy(target.direction.begin(), target.direction.end(),
                rows_.begin() + static_cast<ptrdiff_t>(count_ * blocks_.last.size() + at));
      constants_[count_] = target.constant;
      matrix_.set_value(members_[count_], target.constant + dot(target.direction.data(),
                                                                blocks_.last.data() + at, blocks_.hidden()));
    }
  }

  void pass(size_t layer, const BlockWeights<T>& weights) {
    if (count_ > 0) {
      weights.writings.apply(
          rows_, static_cast<int>(count_),
          [&](size_t i, size_t from, size_t one, double part) {
            at(i, matrix_.feature_column(from, one)) += part;
          },
          [&](size_t i, size_t token, double part) { at(i, matrix_.error_column(layer, token)) = part; },
          constants_.data(), team_);
    }
    std::vector<T> through;
    if (weights.skip != nullptr && count_ > 0)
      through = weights.skip->pull_back(rows_, static_cast<int>(count_), constants_.data(), team_);
    if (!blocks_.parallel) {
      add(through);
      begin_features(layer);
    }
    if (count_ > 0) pass_attention(layer, weights.attention);
    if (blocks_.parallel) {
      add(through);
      begin_features(layer);
    }
  }

  void finish() {
    const auto hidden = static_cast<size_t>(blocks_.hidden());
    for (size_t i = 0; i < members_.size(); ++i) {
      for (size_t token = 0; token < static_cast<size_t>(blocks_.tokens); ++token) {
        at(i, token) = dot(rows_.data() + i * blocks_.last.size() + token * hidden,
                           blocks_.rows.front().input.data() + token * hidden, blocks_.hidden());
      }
      matrix_.set_row(members_[i], parts_.data() + i * matrix_.columns(), constants_[i]);
    }
  }

 private:
  double& at(size_t i, size_t column) { return parts_[i * matrix_.columns() + column]; }
  void add(const std::vector<T>& functions) {
    for (size_t k = 0; k < functions.size(); ++k) rows_[k] += functions[k];
  }

  void begin_features(size_t layer) {
    const FrozenTranscoder<T>& transcoder = replaced_.transcoders[layer];
    std::vector<size_t> which;
    while (count_ + which.size() < members_.size() &&
           matrix_.layer_of(members_[count_ + which.size()]) == layer)
      which.push_back(matrix_.within_layer(members_[count_ + which.size()]));
    std::vector<double> constants;
    const std::vector<T> reads = transcoder.readings(which, constants, team_);
    const auto hidden = static_cast<size_t>(blocks_.hidden());
    for (size_t i = 0; i < which.size(); ++i, ++count_) {
      const auto from = reads.begin() + static_cast<ptrdiff_t>(i * hidden);
      const size_t token = static_cast<size_t>(transcoder.token(which[i])) * hidden;
      std::copy_n(from, hidden, rows_.begin() + static_cast<ptrdiff_t>(count_ * blocks_.last.size() + token));
      constants_[count_] = constants[i];
      matrix_.set_value(members_[count_], transcoder.activations()[which[i]]);
    }
  }

  void pass_attention(size_t layer, const FrozenAttention<T>& attention) {
    const auto n = static_cast<size_t>(blocks_.tokens);
    std::vector<double> rounding(count_ * n);
    attention.pull_back(rows_, static_cast<int>(count_),
                        {nullptr, nullptr, rounding.data(), constants_.data()}, nullptr, team_);
    for (size_t i = 0; i < count_; ++i) {
      for (size_t token = 0; token < n; ++token)
        at(i, matrix_.rounding_column(layer, token)) = rounding[i * n + token];
    }
  }

  const ReplacedBlocks<T>& replaced_;
  const FrozenBlocks& blocks_;
  EdgeMatrix& matrix_;
  std::vector<size_t> members_;
  ThreadTeam& team_;
  size_t count_ = 0;
  std::vector<T> rows_;        // [members, tokens, hidden]
  std::vector<double> parts_;  // [members, columns]
  std::vector<double> constants_;
};

/// Computes rows of the matrix: of targets or of active features.
template <class T>
void compute_rows(const ReplacedBlocks<T>& replaced, const std::vector<GraphTarget>& targets,
                  std::vector<size_t> rows, EdgeMatrix& matrix, ThreadTeam& team, const CancelToken& cancel,
                  std::vector<double>& apart) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](size_t a, size_t b) { return matrix.layer_of(a) > matrix.layer_of(b); });
  const size_t each = std::max<size_t>(1, kChunkRows / static_cast<size_t>(replaced.blocks.tokens));
  std::vector<Chunk<T>> chunks;
  for (size_t from = 0; from < rows.size(); from += each) {
    const auto begin = rows.begin() + static_cast<ptrdiff_t>(from);
    const auto end = begin + static_cast<ptrdiff_t>(std::min(each, rows.size() - from));
    chunks.emplace_back(replaced, matrix, std::vector<size_t>(begin, end), team);
    chunks.back().begin_targets(targets);
  }
  const size_t layers = replaced.blocks.layers();
  const size_t top = std::min(layers, matrix.layer_of(rows.front()) + 1);
  for (size_t layer = top; layer-- > 0;) {
    cancel.check();
    const BlockWeights<T> weights(replaced, layer, team);
    apart[layer] = weights.attention.apart();
    for (Chunk<T>& chunk : chunks) {
      cancel.check();
      chunk.pass(layer, weights);
    }
  }
  for (Chunk<T>& chunk : chunks) chunk.finish();
}

}  // namespace

template <class T>
size_t ReplacedBlocks<T>::active() const {
  return offsets().back();
}

template <class T>
std::vector<size_t> ReplacedBlocks<T>::offsets() const {
  std::vector<size_t> found{0};
  for (const FrozenTranscoder<T>& one : transcoders) found.push_back(found.back() + one.active());
  return found;
}

size_t transcoder_edge_bytes(size_t rows, size_t active, size_t layers, size_t tokens) {
  const size_t together = transcoder_rows_together(tokens) / tokens;
  // Once whole, and once with the nodes alone.
  return (2 * rows * sizeof(float) + together * sizeof(double)) * (active + (3 * layers + 1) * tokens);
}

size_t transcoder_rows_together(size_t tokens) {
  return std::max<size_t>(1, kMostRows / tokens) * tokens;
}

template <class T>
TranscoderEdges transcoder_edges(const ReplacedBlocks<T>& replaced, const std::vector<GraphTarget>& targets,
                                 size_t most, ThreadTeam& team, const CancelToken& cancel,
                                 const std::function<void(size_t, size_t)>& progress) {
  const auto tokens = static_cast<size_t>(replaced.blocks.tokens);
  const size_t all = std::min(most, replaced.active());
  std::vector<double> weights;
  for (const GraphTarget& target : targets) weights.push_back(target.weight);
  EdgeMatrix matrix(replaced.offsets(), tokens, weights, all);
  std::vector<size_t> token_of;
  for (const FrozenTranscoder<T>& one : replaced.transcoders) {
    for (size_t i = 0; i < one.active(); ++i) token_of.push_back(static_cast<size_t>(one.token(i)));
  }
  matrix.set_tokens(std::move(token_of));
  std::vector<double> apart(replaced.blocks.layers(), 0.0);
  std::vector<size_t> rows(targets.size());
  std::iota(rows.begin(), rows.end(), 0);
  compute_rows(replaced, targets, std::move(rows), matrix, team, cancel, apart);
  progress(targets.size(), targets.size() + all);
  const size_t together = transcoder_rows_together(tokens) / tokens;
  for (size_t done = 0; done < all;) {
    cancel.check();
    std::vector<size_t> next = matrix.strongest_unknown(std::min(together, all - done));
    done += next.size();
    compute_rows(replaced, targets, std::move(next), matrix, team, cancel, apart);
    progress(targets.size() + done, targets.size() + all);
  }
  TranscoderEdges found = matrix.finish();
  found.apart = std::move(apart);
  return found;
}

#define TAPLINE_INSTANTIATE(T)                                                                         \
  template struct ReplacedBlocks<T>;                                                                   \
  template TranscoderEdges transcoder_edges(const ReplacedBlocks<T>&, const std::vector<GraphTarget>&, \
                                            size_t, ThreadTeam&, const CancelToken&,                   \
                                            const std::function<void(size_t, size_t)>&);
TAPLINE_INSTANTIATE(float)
TAPLINE_INSTANTIATE(double)
#undef TAPLINE_INSTANTIATE

}  // namespace tapline
