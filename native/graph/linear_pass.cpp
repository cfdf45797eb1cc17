#include "graph/linear_pass.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tapline {

namespace {

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double squares_of(const std::vector<double>& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

/// Functions that were met so far are the first ones of a list that is sorted from the last place on.
template <class T>
class Descent {
 public:
  Descent(const std::vector<BlockRows>& blocks, const std::vector<float>& last, int tokens,
          const std::vector<StreamFunction>& functions, ThreadTeam& team)
      : blocks_(blocks),
        last_(last),
        tokens_(tokens),
        hidden_(static_cast<int>(last.size()) / tokens),
        functions_(functions),
        team_(team),
        order_(functions.size()),
        rows_(functions.size() * last.size(), T{0}),
        constants_(functions.size(), 0.0) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return functions[b].place < functions[a].place; });
    const size_t layers = blocks.size();
    const auto n = static_cast<size_t>(tokens);
    for (size_t i = 0; i < functions.size(); ++i) {
      StreamParts parts;
      parts.embeddings.resize(n);
      parts.ffn.resize(layers * n);
      parts.rounding.resize(layers * n);
      parts.heads.resize(layers);
      found_.push_back(std::move(parts));
    }
  }

  void begin(Place place) {
    while (count_ < order_.size() && functions_[order_[count_]].place == place) {
      const StreamFunction& function = functions_[order_[count_]];
      T* to = row(count_, function.token);
      double value = function.constant;
      for (int k = 0; k < hidden_; ++k) {
        const double direction = function.direction[static_cast<size_t>(k)];
        to[k] = static_cast<T>(direction);
        value += direction * stream(place, function.token, k);
      }
      found_[order_[count_]].value = value;
      constants_[count_] = function.constant;
      ++count_;
    }
  }

  void take_ffn(size_t layer) {
    each_row([&](StreamParts& parts, const T* function, int token) {
      parts.ffn[layer * static_cast<size_t>(tokens_) + static_cast<size_t>(token)] =
          dot(function, blocks_[layer].ffn, token);
    });
  }

  void take_attention(size_t layer, const FrozenAttention<T>& attention, int heads) {
    const auto n = static_cast<size_t>(tokens_);
    const size_t each = static_cast<size_t>(heads) * n;
    std::vector<double> by_head(count_ * each);
    std::vector<double> rounding(count_ * n);
    attention.pull_back(rows_, static_cast<int>(count_), {by_head.data(), rounding.data(), constants_.data()},
                        team_);
    for (StreamParts& parts : found_) parts.heads[layer].resize(each);
    for (size_t i = 0; i < count_; ++i) {
      StreamParts& parts = found_[order_[i]];
      const auto at = [](const std::vector<double>& all, size_t from) {
        return all.begin() + static_cast<ptrdiff_t>(from);
      };
      parts.heads[layer].assign(at(by_head, i * each), at(by_head, (i + 1) * each));
      std::copy_n(at(rounding, i * n), n, parts.rounding.begin() + static_cast<ptrdiff_t>(layer * n));
    }
  }

  std::vector<StreamParts> finish() {
    each_row([&](StreamParts& parts, const T* function, int token) {
      parts.embeddings[static_cast<size_t>(token)] = dot(function, blocks_.front().input, token);
    });
    for (size_t i = 0; i < count_; ++i) {
      StreamParts& parts = found_[order_[i]];
      parts.constant = constants_[i];
      const double sum =
          parts.constant + sum_of(parts.embeddings) + sum_of(parts.ffn) + sum_of(parts.rounding);
      const double size =
          std::sqrt(parts.value * parts.value + parts.constant * parts.constant +
                    squares_of(parts.embeddings) + squares_of(parts.ffn) + squares_of(parts.rounding));
      parts.residual = size == 0 ? 0 : std::abs(sum - parts.value) / size;
    }
    return std::move(found_);
  }

 private:
  T* row(size_t function, int token) {
    return rows_.data() + (function * static_cast<size_t>(tokens_) + static_cast<size_t>(token)) *
                              static_cast<size_t>(hidden_);
  }

  double stream(Place place, int token, int k) const {
    const size_t at = static_cast<size_t>(token) * static_cast<size_t>(hidden_) + static_cast<size_t>(k);
    const BlockRows& block = blocks_[static_cast<size_t>(place.layer)];
    const bool end = static_cast<size_t>(place.layer) + 1 == blocks_.size();
    if (place.point == Point::kBlockOut)
      return static_cast<double>(end ? last_[at] : blocks_[static_cast<size_t>(place.layer) + 1].input[at]);
    return static_cast<double>(place.point == Point::kMid ? block.input[at] + block.attn[at]
                                                          : block.input[at]);
  }

  double dot(const T* function, const std::vector<float>& rows, int token) const {
    const float* there = rows.data() + static_cast<ptrdiff_t>(token) * hidden_;
    double sum = 0;
    for (int k = 0; k < hidden_; ++k) sum += static_cast<double>(function[k]) * static_cast<double>(there[k]);
    return sum;
  }

  template <class Take>
  void each_row(const Take& take) {
    team_.parallel_for(static_cast<int>(count_), [&](int i) {
      const auto function = static_cast<size_t>(i);
      for (int token = 0; token < tokens_; ++token)
        take(found_[order_[function]], row(function, token), token);
    });
  }

  const std::vector<BlockRows>& blocks_;
  const std::vector<float>& last_;
  int tokens_;
  int hidden_;
  const std::vector<StreamFunction>& functions_;
  ThreadTeam& team_;
  std::vector<size_t> order_;
  size_t count_ = 0;
  std::vector<T> rows_;  // [functions in order, tokens, hidden]
  std::vector<double> constants_;
  std::vector<StreamParts> found_;
};

template <class T>
LinearPass descend(const std::vector<AttentionPath>& paths, const WeightFile& weights,
                   const std::vector<BlockRows>& blocks, const std::vector<float>& last, int tokens,
                   const std::vector<StreamFunction>& functions, ThreadTeam& team, const CancelToken& cancel,
                   const std::function<void(size_t, size_t)>& progress) {
  Descent<T> descent(blocks, last, tokens, functions, team);
  LinearPass found;
  found.apart.resize(blocks.size());
  for (size_t layer = blocks.size(); layer-- > 0;) {
    cancel.check();
    const auto at = [&](Point point) { return Place{static_cast<int>(layer), point}; };
    descent.begin(at(Point::kBlockOut));
    descent.take_ffn(layer);
    descent.begin(at(Point::kMid));
    const FrozenAttention<T> attention(paths[layer], weights, blocks[layer], tokens, team);
    found.apart[layer] = attention.apart();
    descent.take_attention(layer, attention, paths[layer].heads);
    descent.begin(at(Point::kBlockIn));
    progress(blocks.size() - layer, blocks.size());
  }
  found.functions = descent.finish();
  return found;
}

}  // namespace

LinearPass linear_pass(const std::vector<AttentionPath>& paths, const WeightFile& weights,
                       const std::vector<BlockRows>& blocks, const std::vector<float>& last, int tokens,
                       const std::vector<StreamFunction>& functions, bool precise, ThreadTeam& team,
                       const CancelToken& cancel, const std::function<void(size_t, size_t)>& progress) {
  const auto pass = precise ? descend<double> : descend<float>;
  return pass(paths, weights, blocks, last, tokens, functions, team, cancel, progress);
}

}  // namespace tapline
