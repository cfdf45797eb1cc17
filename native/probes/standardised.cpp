#include "probes/standardised.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace tapline::probes {

namespace {

// Columns that are processed together, so that all rows' parts stay in the second-level cache.
constexpr int kColumns = 256;

}  // namespace

// The mean by differences from the first row: a constant feature has a deviation of exactly 0 whatever its
// size.
StandardisedExamples::StandardisedExamples(const Examples& examples, double std_floor, ThreadTeam& team)
    : examples_(examples) {
  for (int i = 0; i < examples.count; ++i) {
    if (examples.train[static_cast<size_t>(i)] != 0) rows_.push_back(i);
  }
  const size_t hidden = static_cast<size_t>(examples.hidden);
  const double n = static_cast<double>(rows_.size());
  mean_.assign(hidden, 0.0);
  std_.assign(hidden, 0.0);
  inverse_std_.assign(hidden, 0.0);
  if (rows_.empty()) return;
  const Kernels& kernels = best_kernels();
  team.parallel_for(round_up(examples.hidden, kColumns) / kColumns, [&](int strip) {
    const int from = strip * kColumns;
    const int count = std::min(kColumns, examples.hidden - from);
    double first[kColumns];
    std::copy_n(features(rows_[0]) + from, count, first);
    double* mean = mean_.data() + from;
    double* deviation = std_.data() + from;
    for (const int row : rows_) kernels.add_differences(features(row) + from, first, count, mean);
    for (int k = 0; k < count; ++k) mean[k] = first[k] + mean[k] / n;
    for (const int row : rows_) {
      kernels.add_square_differences(features(row) + from, mean, count, deviation);
    }
    for (int k = 0; k < count; ++k) {
      deviation[k] = std::max(std::sqrt(deviation[k] / n), std_floor);
      inverse_std_[static_cast<size_t>(from + k)] = 1.0 / deviation[k];
    }
  });
}

const float* StandardisedExamples::features(int example) const {
  return examples_.features + static_cast<size_t>(example) * static_cast<size_t>(examples_.hidden);
}

template <class T>
void StandardisedExamples::fill(int panel, int from, int count, T* to) const {
  constexpr int kWidth = PanelMatrix<T>::kWidth;
  const float* rows[kWidth];
  for (int i = 0; i < kWidth; ++i) {
    const int row = panel * kWidth + i;
    rows[i] = row < this->rows() ? features(example(row)) + from : nullptr;
  }
  panel_kernels<T>().standardise(rows, mean_.data() + from, inverse_std_.data() + from, count, to);
}

template void StandardisedExamples::fill(int, int, int, float*) const;
template void StandardisedExamples::fill(int, int, int, double*) const;

void StandardisedExamples::transposed_times(const double* v, double* y, ThreadTeam* team) const {
  const int strips = round_up(examples_.hidden, kColumns) / kColumns;
  const auto strip = [&](int index) {
    const int from = index * kColumns;
    const int count = std::min(kColumns, examples_.hidden - from);
    std::fill_n(y + from, count, 0.0);
    for (int i = 0; i < rows(); ++i) {
      best_kernels().add_scaled_differences(features(example(i)) + from, mean_.data() + from, v[i], count,
                                            y + from);
    }
    for (int k = from; k < from + count; ++k) y[k] *= inverse_std_[static_cast<size_t>(k)];
  };
  if (team != nullptr) return team->parallel_for(strips, strip);
  for (int index = 0; index < strips; ++index) strip(index);
}

// weight . (x - mean) / std of `count` examples.
void StandardisedExamples::dots(const std::vector<double>& weight, int count,
                                const std::function<int(int)>& example_of, double* y,
                                ThreadTeam* team) const {
  std::vector<double> scaled(weight.size());
  for (size_t k = 0; k < weight.size(); ++k) scaled[k] = weight[k] * inverse_std_[k];
  constexpr int kTogether = 16;
  const auto sum_part = [&](int part) {
    for (int i = part * kTogether; i < std::min(count, (part + 1) * kTogether); ++i) {
      y[i] = best_kernels().difference_dot(features(example_of(i)), mean_.data(), scaled.data(),
                                           examples_.hidden);
    }
  };
  const int parts = round_up(count, kTogether) / kTogether;
  if (team != nullptr) return team->parallel_for(parts, sum_part);
  for (int part = 0; part < parts; ++part) sum_part(part);
}

void StandardisedExamples::times(const std::vector<double>& v, double* y, ThreadTeam* team) const {
  dots(
      v, rows(), [this](int row) { return example(row); }, y, team);
}

std::vector<double> StandardisedExamples::products(const std::vector<double>& weight,
                                                   ThreadTeam* team) const {
  std::vector<double> values(static_cast<size_t>(examples_.count));
  dots(
      weight, examples_.count, [](int index) { return index; }, values.data(), team);
  return values;
}

}  // namespace tapline::probes
