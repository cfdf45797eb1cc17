#include "graph/frozen_path.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapline {

namespace {

using Kind = PathStep::Kind;

template <class T>
T mean_of(const T* values, int count) {
  double sum = 0;
  for (int k = 0; k < count; ++k) sum += static_cast<double>(values[k]);
  return static_cast<T>(sum / count);
}

template <class T>
void centre(T* values, int count) {
  const T mean = mean_of(values, count);
  for (int k = 0; k < count; ++k) values[k] -= mean;
}

bool is_norm(const PathStep& step) {
  return step.kind == Kind::kRmsNorm || step.kind == Kind::kLayerNorm;
}

/// The last weight that this thread read; it stays, so that no matrix gets new pages of memory.
const std::vector<float>& read_weight(const ggml_tensor* weight, const WeightFile& weights,
                                      ThreadTeam& team) {
  thread_local std::vector<float> values;
  if (weight == nullptr)
    values.clear();
  else
    weights.read(weight, values, team);
  return values;
}

/// Where a row of a [rows, width] matrix begins.
size_t row_at(int row, int width) {
  return static_cast<size_t>(row) * static_cast<size_t>(width);
}

}  // namespace

template <class T>
FrozenPath<T>::FrozenPath(const std::vector<PathStep>& steps, const WeightFile& weights, std::vector<T> input,
                          int rows, ThreadTeam& team)
    : rows_(rows), output_(std::move(input)) {
  for (const PathStep& plan : steps) {
    Step& step = steps_.emplace_back();
    step.plan = plan;
    freeze(step, weights, output_, team);
  }
}

template <class T>
void FrozenPath<T>::freeze(Step& step, const WeightFile& weights, std::vector<T>& x, ThreadTeam& team) const {
  const PathStep& plan = step.plan;
  const std::vector<float>& read = read_weight(plan.weight, weights, team);
  if (plan.kind == Kind::kMatrix) {
    std::vector<T> y(static_cast<size_t>(rows_) * static_cast<size_t>(plan.out));
    FixedProduct<T>(read.data(), plan.out, plan.in, /*transposed=*/false, team)
        .apply(x.data(), rows_, y.data(), team);
    step.product =
        std::make_unique<FixedProduct<T>>(read.data(), plan.out, plan.in, /*transposed=*/true, team);
    x = std::move(y);
    return;
  }
  if (plan.kind == Kind::kTake) {
    std::vector<T> y;
    y.reserve(static_cast<size_t>(rows_) * plan.take.size());
    for (int row = 0; row < rows_; ++row) {
      for (const int32_t place : plan.take) y.push_back(x[row_at(row, plan.in) + static_cast<size_t>(place)]);
    }
    x = std::move(y);
    return;
  }
  if (plan.weight != nullptr) {
    for (int k = 0; k < plan.in; ++k)
      step.values.push_back(static_cast<T>(read[static_cast<size_t>(k) % read.size()]));
  }
  for (int row = 0; row < rows_; ++row) {
    T* values = x.data() + row_at(row, plan.in);
    for (int from = 0; is_norm(plan) && from < plan.in; from += plan.group) {
      if (plan.kind == Kind::kLayerNorm) centre(values + from, plan.group);
      double squares = 0;
      for (int k = from; k < from + plan.group; ++k)
        squares += static_cast<double>(values[k]) * static_cast<double>(values[k]);
      step.scales.push_back(
          static_cast<T>(1 / std::sqrt(squares / plan.group + static_cast<double>(plan.a))));
      for (int k = from; k < from + plan.group; ++k) values[k] *= step.scales.back();
    }
    for (int k = 0; !is_norm(plan) && k < plan.in; ++k) {
      if (plan.kind == Kind::kMultiply) values[k] *= step.values[static_cast<size_t>(k)];
      if (plan.kind == Kind::kAdd) values[k] += step.values[static_cast<size_t>(k)];
      if (plan.kind == Kind::kScale) values[k] = values[k] * static_cast<T>(plan.a) + static_cast<T>(plan.b);
    }
  }
}

template <class T>
void FrozenPath<T>::pull_row_back(const Step& step, int row, T* function, double& constant) const {
  const PathStep& plan = step.plan;
  switch (plan.kind) {
    case Kind::kMultiply:
      for (int k = 0; k < plan.in; ++k) function[k] *= step.values[static_cast<size_t>(k)];
      break;
    case Kind::kAdd:
      for (int k = 0; k < plan.in; ++k)
        constant +=
            static_cast<double>(function[k]) * static_cast<double>(step.values[static_cast<size_t>(k)]);
      break;
    case Kind::kScale:
      for (int k = 0; k < plan.in; ++k) {
        constant += static_cast<double>(function[k]) * static_cast<double>(plan.b);
        function[k] *= static_cast<T>(plan.a);
      }
      break;
    default: {
      const int groups = plan.in / plan.group;
      for (int g = 0; g < groups; ++g) {
        T* values = function + static_cast<std::ptrdiff_t>(g) * plan.group;
        const T scale = step.scales[row_at(row, groups) + static_cast<size_t>(g)];
        for (int k = 0; k < plan.group; ++k) values[k] *= scale;
        if (plan.kind == Kind::kLayerNorm) centre(values, plan.group);
      }
    }
  }
}

template <class T>
void FrozenPath<T>::pull_back(const T* functions, int count, std::vector<T>& before, double* constants,
                              ThreadTeam& team) const {
  pull(functions, count, rows_, nullptr, before, constants, team);
}

template <class T>
void FrozenPath<T>::pull_back(std::vector<T>& functions, int count, double* constants,
                              ThreadTeam& team) const {
  const std::vector<T> given = std::move(functions);
  pull(given.data(), count, rows_, nullptr, functions, constants, team);
}

template <class T>
void FrozenPath<T>::pull_rows_back(std::vector<T>& functions, const std::vector<int>& rows, double* constants,
                                   ThreadTeam& team) const {
  const std::vector<T> given = std::move(functions);
  pull(given.data(), static_cast<int>(rows.size()), 1, rows.data(), functions, constants, team);
}

template <class T>
void FrozenPath<T>::pull(const T* functions, int count, int each, const int* at, std::vector<T>& before,
                         double* constants, ThreadTeam& team) const {
  const int all = count * each;
  const auto after = static_cast<int>(output_.size()) / rows_;
  const T* now = functions;
  const auto copy_given = [&] {
    before.resize(row_at(all, after));
    team.parallel_for(count, [&](int one) {
      const size_t from = row_at(one * each, after);
      std::copy_n(functions + from, row_at(each, after), before.data() + from);
    });
    now = before.data();
  };
  std::vector<T> spare;
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    const PathStep& plan = step.plan;
    if (plan.kind == Kind::kMatrix || plan.kind == Kind::kTake) {
      const bool given = now == functions;
      std::vector<T>& next = given ? before : spare;
      if (plan.kind == Kind::kMatrix) {
        next.resize(row_at(all, plan.in));
        step.product->apply(now, all, next.data(), team);
      } else {
        next.assign(row_at(all, plan.in), T{0});
        for (int row = 0; row < all; ++row) {
          const T* from = now + row_at(row, plan.out);
          T* to = next.data() + row_at(row, plan.in);
          for (size_t k = 0; k < plan.take.size(); ++k) to[plan.take[k]] += from[k];
        }
      }
      if (!given) before.swap(spare);
      now = before.data();
      continue;
    }
    if (now == functions) copy_given();
    team.parallel_for(count, [&](int one) {
      for (int row = 0; row < each; ++row) {
        const int index = one * each + row;
        pull_row_back(step, at == nullptr ? row : at[index], before.data() + row_at(index, plan.in),
                      constants[one]);
      }
    });
  }
  if (now == functions) copy_given();
}

template <class T>
void FrozenPath<T>::push(std::vector<T>& x, const std::vector<int>& rows, const WeightFile& weights,
                         ThreadTeam& team) const {
  const auto count = static_cast<int>(rows.size());
  for (const Step& step : steps_) {
    const PathStep& plan = step.plan;
    std::vector<T> y;
    if (plan.kind == Kind::kMatrix) {
      y.resize(row_at(count, plan.out));
      const std::vector<float>& matrix = read_weight(plan.weight, weights, team);
      FixedProduct<T>(matrix.data(), plan.out, plan.in, /*transposed=*/false, team)
          .apply(x.data(), count, y.data(), team);
      x = std::move(y);
      continue;
    }
    if (plan.kind == Kind::kTake) {
      for (int row = 0; row < count; ++row) {
        for (const int32_t place : plan.take)
          y.push_back(x[row_at(row, plan.in) + static_cast<size_t>(place)]);
      }
      x = std::move(y);
      continue;
    }
    for (int row = 0; row < count; ++row) {
      T* values = x.data() + row_at(row, plan.in);
      for (int k = 0; plan.kind == Kind::kMultiply && k < plan.in; ++k)
        values[k] *= step.values[static_cast<size_t>(k)];
      for (int k = 0; plan.kind == Kind::kScale && k < plan.in; ++k) values[k] *= static_cast<T>(plan.a);
      for (int from = 0; is_norm(plan) && from < plan.in; from += plan.group) {
        if (plan.kind == Kind::kLayerNorm) centre(values + from, plan.group);
        const int group = rows[static_cast<size_t>(row)] * (plan.in / plan.group) + from / plan.group;
        for (int k = from; k < from + plan.group; ++k) values[k] *= step.scales[static_cast<size_t>(group)];
      }
    }
  }
}

template class FrozenPath<float>;
template class FrozenPath<double>;

}  // namespace tapline
