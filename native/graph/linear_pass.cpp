#include "graph/linear_pass.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "graph/difference.h"

namespace tapline {

namespace {

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double squares_of(const std::vector<double>& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

bool stronger(const NeuronPart& a, const NeuronPart& b) {
  return std::abs(a.value) > std::abs(b.value);
}

/// Functions that were met so far are the first ones of a list that is sorted from the last place on.
template <class T>
class Descent {
 public:
  Descent(const FrozenBlocks& blocks, const LinearPassRequest& request, ThreadTeam& team)
      : blocks_(blocks),
        request_(request),
        tokens_(blocks.tokens),
        hidden_(blocks.hidden()),
        team_(team),
        order_(request.functions.size()),
        rows_(request.functions.size() * blocks.last.size(), T{0}),
        constants_(request.functions.size(), 0.0),
        found_(request.functions.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return request.functions[b].place < request.functions[a].place;
    });
    const size_t all = blocks.layers() * n();
    for (StreamParts& parts : found_) {
      parts.embeddings.resize(n());
      for (std::vector<double>* values : {&parts.ffn, &parts.rounding, &parts.streams}) values->resize(all);
      if (request.neurons > 0) parts.ffn_rounding.resize(all);
      if (!request.others.empty()) {
        parts.ffn_gains.resize(all);
        parts.head_gains.resize(blocks.layers());
      }
      parts.heads.resize(blocks.layers());
    }
  }

  void begin(Place place) {
    while (count_ < order_.size() && request_.functions[order_[count_]].place == place) {
      const StreamFunction& function = request_.functions[order_[count_]];
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
      double& own = parts.ffn[at(layer, token)];
      own = dot(function, row_of(blocks_.rows[layer].ffn, token), hidden_);
      if (request_.others.empty()) return;
      parts.ffn_gains[at(layer, token)] =
          dot(function, row_of(request_.others[layer].ffn, token), hidden_) - own;
    });
  }

  void take_input(size_t layer) {
    each_row([&](StreamParts& parts, const T* function, int token) {
      parts.streams[at(layer, token)] = dot(function, row_of(blocks_.rows[layer].input, token), hidden_);
    });
  }

  /// Functions of the MLP's input, to be added to those of the same place.
  std::vector<T> take_neurons(size_t layer, const FrozenMlp<T>& mlp) {
    std::vector<double> rounding(count_ * n());
    const auto width = static_cast<int>(mlp.neurons().size()) / tokens_;
    const auto keep = [&](int function, const T* parts) {
      std::vector<NeuronPart>& best = found_[order_[static_cast<size_t>(function)]].neurons;
      for (int i = 0; i < tokens_ * width; ++i) {
        const auto value = static_cast<double>(parts[i]);
        const bool full = best.size() == request_.neurons;
        if (value == 0 || (full && std::abs(value) <= std::abs(best.front().value))) continue;
        if (full) {
          std::pop_heap(best.begin(), best.end(), stronger);
          best.pop_back();
        }
        best.push_back({static_cast<int>(layer), i / width, i % width,
                        static_cast<double>(mlp.neurons()[static_cast<size_t>(i)]), value});
        std::push_heap(best.begin(), best.end(), stronger);
      }
    };
    std::vector<T> below =
        mlp.pull_back(rows_, static_cast<int>(count_), rounding.data(), constants_.data(), keep, team_);
    for (size_t i = 0; i < count_; ++i) copy(rounding, i, found_[order_[i]].ffn_rounding, layer);
    return below;
  }

  void take_attention(size_t layer, const FrozenAttention<T>& attention, int heads) {
    const size_t each = static_cast<size_t>(heads) * n();
    std::vector<double> by_head(count_ * each);
    const bool gains = !request_.others.empty();
    std::vector<double> replaced(gains ? by_head.size() : 0);
    std::vector<double> rounding(count_ * n());
    attention.pull_back(rows_, static_cast<int>(count_),
                        {by_head.data(), replaced.data(), rounding.data(), constants_.data()},
                        gains ? request_.others[layer].heads.data() : nullptr, team_);
    for (StreamParts& parts : found_) {
      parts.heads[layer].resize(each);
      if (gains) parts.head_gains[layer].resize(each);
    }
    for (size_t i = 0; i < count_; ++i) {
      StreamParts& parts = found_[order_[i]];
      std::copy_n(by_head.begin() + static_cast<ptrdiff_t>(i * each), each, parts.heads[layer].begin());
      for (size_t k = 0; gains && k < each; ++k)
        parts.head_gains[layer][k] = replaced[i * each + k] - by_head[i * each + k];
      copy(rounding, i, parts.rounding, layer);
    }
  }

  void add(const std::vector<T>& functions) {
    for (size_t k = 0; k < functions.size(); ++k) rows_[k] += functions[k];
  }

  std::vector<StreamParts> finish() {
    each_row([&](StreamParts& parts, const T* function, int token) {
      parts.embeddings[static_cast<size_t>(token)] =
          dot(function, row_of(blocks_.rows.front().input, token), hidden_);
    });
    for (size_t i = 0; i < count_; ++i) {
      StreamParts& parts = found_[order_[i]];
      parts.constant = constants_[i];
      std::sort(parts.neurons.begin(), parts.neurons.end(), stronger);
      const std::vector<double>& ffn = request_.neurons > 0 ? parts.ffn_rounding : parts.ffn;
      const double sum = parts.constant + sum_of(parts.embeddings) + sum_of(ffn) + sum_of(parts.rounding);
      const double size =
          std::sqrt(parts.value * parts.value + parts.constant * parts.constant +
                    squares_of(parts.embeddings) + squares_of(ffn) + squares_of(parts.rounding));
      parts.residual = size == 0 ? 0 : std::abs(sum - parts.value) / size;
    }
    return std::move(found_);
  }

 private:
  size_t n() const { return static_cast<size_t>(tokens_); }
  size_t at(size_t layer, int token) const { return layer * n() + static_cast<size_t>(token); }

  T* row(size_t function, int token) {
    return rows_.data() + at(function, token) * static_cast<size_t>(hidden_);
  }
  const float* row_of(const std::vector<float>& rows, int token) const {
    return rows.data() + static_cast<ptrdiff_t>(token) * hidden_;
  }

  /// One function's numbers by token into a layer of its parts.
  void copy(const std::vector<double>& from, size_t function, std::vector<double>& to, size_t layer) const {
    std::copy_n(from.begin() + static_cast<ptrdiff_t>(function * n()), n(),
                to.begin() + static_cast<ptrdiff_t>(layer * n()));
  }

  double stream(Place place, int token, int k) const {
    const auto layer = static_cast<size_t>(place.layer);
    const BlockRows& block = blocks_.rows[layer];
    const bool end = layer + 1 == blocks_.layers();
    if (place.point == Point::kBlockOut)
      return static_cast<double>(row_of(end ? blocks_.last : blocks_.rows[layer + 1].input, token)[k]);
    const float input = row_of(block.input, token)[k];
    return static_cast<double>(place.point == Point::kMid ? input + row_of(block.attn, token)[k] : input);
  }

  template <class Take>
  void each_row(const Take& take) {
    team_.parallel_for(static_cast<int>(count_), [&](int i) {
      const auto function = static_cast<size_t>(i);
      for (int token = 0; token < tokens_; ++token)
        take(found_[order_[function]], row(function, token), token);
    });
  }

  const FrozenBlocks& blocks_;
  const LinearPassRequest& request_;
  int tokens_;
  int hidden_;
  ThreadTeam& team_;
  std::vector<size_t> order_;
  size_t count_ = 0;
  std::vector<T> rows_;  // [functions in order, tokens, hidden]
  std::vector<double> constants_;
  std::vector<StreamParts> found_;
};

template <class T>
LinearPass descend(const FrozenBlocks& blocks, const LinearPassRequest& request, ThreadTeam& team,
                   const CancelToken& cancel, const std::function<void(size_t, size_t)>& progress) {
  Descent<T> descent(blocks, request, team);
  const size_t layers = blocks.layers();
  LinearPass found;
  found.apart.resize(layers);
  if (request.neurons > 0) found.ffn_apart.resize(layers);
  for (size_t layer = layers; layer-- > 0;) {
    const auto at = [&](Point point) { return Place{static_cast<int>(layer), point}; };
    cancel.check();
    descent.begin(at(Point::kBlockOut));
    descent.take_ffn(layer);
    std::vector<T> through_mlp;
    if (request.neurons > 0) {
      const FrozenMlp<T> mlp = blocks.frozen_mlp<T>(layer, team);
      found.ffn_apart[layer] = mlp.apart();
      through_mlp = descent.take_neurons(layer, mlp);
    }
    if (!blocks.parallel) descent.add(through_mlp);
    descent.begin(at(Point::kMid));
    cancel.check();
    const FrozenAttention<T> attention = blocks.frozen_attention<T>(layer, team);
    found.apart[layer] = attention.apart();
    descent.take_attention(layer, attention, blocks.attention[layer].heads);
    if (blocks.parallel) descent.add(through_mlp);
    descent.take_input(layer);
    descent.begin(at(Point::kBlockIn));
    progress(layers - layer, layers);
  }
  found.functions = descent.finish();
  return found;
}

}  // namespace

LinearPass linear_pass(const FrozenBlocks& blocks, const LinearPassRequest& request, ThreadTeam& team,
                       const CancelToken& cancel, const std::function<void(size_t, size_t)>& progress) {
  const auto pass = request.precise ? descend<double> : descend<float>;
  return pass(blocks, request, team, cancel, progress);
}

}  // namespace tapline
