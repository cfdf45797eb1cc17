#include "graph/frozen_attention.h"

#include <algorithm>

#include "graph/difference.h"

namespace tapline {

namespace {

template <class T>
std::vector<T> as(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

template <class T>
FrozenAttention<T>::FrozenAttention(const AttentionPath& path, const WeightFile& weights,
                                    const BlockRows& rows, int tokens, ThreadTeam& team)
    : tokens_(tokens),
      heads_(path.heads),
      group_(path.heads / path.value_heads),
      width_(path.head_width),
      rows_(rows),
      values_(path.values, weights, as<T>(rows.input), tokens, team),
      output_(path.output, weights, as<T>(rows.heads), tokens, team) {
  const int all = heads_ * width_;
  const auto value_width = static_cast<int>(values_.output().size()) / tokens_;
  std::vector<T> mixed(rows.heads.size());
  team.parallel_for(tokens_, [&](int reader) {
    std::vector<double> sums(static_cast<size_t>(width_));
    for (int h = 0; h < heads_; ++h) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const float* weight = rows_.weights.data() + (static_cast<ptrdiff_t>(h) * tokens_ + reader) * tokens_;
      for (int token = 0; token < tokens_; ++token) {
        const T* value =
            values_.output().data() + static_cast<ptrdiff_t>(token) * value_width + h / group_ * width_;
        for (int k = 0; k < width_; ++k)
          sums[static_cast<size_t>(k)] += static_cast<double>(weight[token]) * static_cast<double>(value[k]);
      }
      T* to = mixed.data() + static_cast<ptrdiff_t>(reader) * all + h * width_;
      for (int k = 0; k < width_; ++k) to[k] = static_cast<T>(sums[static_cast<size_t>(k)]);
    }
  });
  const double read = subtract(rows.heads, mixed, head_rounding_);
  const double written = subtract(rows.attn, output_.output(), rounding_);
  apart_ = std::max(read, written);
}

template <class T>
void FrozenAttention<T>::pull_back(std::vector<T>& functions, int count, const Parts& parts,
                                   const float* other, ThreadTeam& team, const AtHeads& at_heads) const {
  const int all = heads_ * width_;
  const auto hidden = static_cast<int>(rounding_.size()) / tokens_;
  const auto value_width = static_cast<int>(values_.output().size()) / tokens_;
  // They stay, so that no call gets new pages of memory. Other threads would find their own ones by name.
  thread_local std::vector<T> own_read;
  thread_local std::vector<T> own_values;
  thread_local std::vector<T> own_below;
  std::vector<T>& read = own_read;
  std::vector<T>& values = own_values;
  std::vector<T>& below = own_below;
  const auto add_rounding = [&](const std::vector<T>& from, const std::vector<T>& difference, int width) {
    team.parallel_for(count * tokens_, [&](int row) {
      const T* there = difference.data() + static_cast<ptrdiff_t>(row % tokens_) * width;
      parts.rounding[row] += dot(from.data() + static_cast<ptrdiff_t>(row) * width, there, width);
    });
  };
  add_rounding(functions, rounding_, hidden);
  output_.pull_back(functions.data(), count, read, parts.constants, team);
  if (at_heads) at_heads(read);
  add_rounding(read, head_rounding_, all);
  values.resize(static_cast<size_t>(count) * static_cast<size_t>(tokens_ * value_width));
  team.parallel_for(count, [&](int one) {
    const T* functions_of_heads = read.data() + static_cast<ptrdiff_t>(one) * tokens_ * all;
    for (int h = 0; parts.heads != nullptr && h < heads_; ++h) {
      for (int token = 0; token < tokens_; ++token) {
        const ptrdiff_t at = static_cast<ptrdiff_t>(token) * all + h * width_;
        const ptrdiff_t part = (static_cast<ptrdiff_t>(one) * heads_ + h) * tokens_ + token;
        parts.heads[part] = dot(functions_of_heads + at, rows_.heads.data() + at, width_);
        if (other != nullptr) parts.replaced[part] = dot(functions_of_heads + at, other + at, width_);
      }
    }
    mix_back(functions_of_heads, values.data() + static_cast<ptrdiff_t>(one) * tokens_ * value_width,
             value_width);
  });
  values_.pull_back(values.data(), count, below, parts.constants, team);
  team.parallel_for(count, [&](int one) {
    const size_t begin = static_cast<size_t>(one) * rounding_.size();
    for (size_t k = begin; k < begin + rounding_.size(); ++k) functions[k] += below[k];
  });
}

/// A token's values are read by others: values[token] = sum of weight[reader, token] * read[reader], head by
/// head.
template <class T>
void FrozenAttention<T>::mix_back(const T* read, T* values, int value_width) const {
  const int all = heads_ * width_;
  std::fill_n(values, static_cast<ptrdiff_t>(tokens_) * value_width, T{0});
  for (int h = 0; h < heads_; ++h) {
    for (int reader = 0; reader < tokens_; ++reader) {
      const T* from = read + static_cast<ptrdiff_t>(reader) * all + h * width_;
      const float* weight = rows_.weights.data() + (static_cast<ptrdiff_t>(h) * tokens_ + reader) * tokens_;
      for (int token = 0; token < tokens_; ++token) {
        const auto share = static_cast<T>(weight[token]);
        if (share == T{0}) continue;
        T* to = values + static_cast<ptrdiff_t>(token) * value_width + h / group_ * width_;
        for (int k = 0; k < width_; ++k) to[k] += share * from[k];
      }
    }
  }
}

template <class T>
void FrozenAttention<T>::push(std::vector<T>& changes, int count, const WeightFile& weights,
                              ThreadTeam& team) const {
  const int all = heads_ * width_;
  const auto value_width = static_cast<int>(values_.output().size()) / tokens_;
  const auto hidden = static_cast<ptrdiff_t>(rounding_.size()) / tokens_;
  std::vector<int> at;
  for (int row = 0; row < count * tokens_; ++row) at.push_back(row % tokens_);
  std::vector<T> values(changes.begin(), changes.begin() + static_cast<ptrdiff_t>(count) * tokens_ * hidden);
  values_.push(values, at, weights, team);
  std::vector<T> mixed(static_cast<size_t>(count) * static_cast<size_t>(tokens_ * all), T{0});
  team.parallel_for(count * tokens_, [&](int row) {
    const int reader = row % tokens_;
    const T* first = values.data() + static_cast<ptrdiff_t>(row - reader) * value_width;
    T* to = mixed.data() + static_cast<ptrdiff_t>(row) * all;
    for (int h = 0; h < heads_; ++h) {
      const float* weight = rows_.weights.data() + (static_cast<ptrdiff_t>(h) * tokens_ + reader) * tokens_;
      for (int token = 0; token < tokens_; ++token) {
        const T* value = first + static_cast<ptrdiff_t>(token) * value_width + h / group_ * width_;
        for (int k = 0; k < width_; ++k) to[h * width_ + k] += static_cast<T>(weight[token]) * value[k];
      }
    }
  });
  output_.push(mixed, at, weights, team);
  for (size_t k = 0; k < mixed.size(); ++k) changes[k] += mixed[k];
}

template class FrozenAttention<float>;
template class FrozenAttention<double>;

}  // namespace tapline
