#include "graph/edge_matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "graph/transcoder_edges.h"

namespace tapline {

EdgeMatrix::EdgeMatrix(std::vector<size_t> offsets, size_t tokens, std::vector<double> weights, size_t most)
    : offsets_(std::move(offsets)), tokens_(tokens), weights_(std::move(weights)) {
  const size_t rows = weights_.size() + offsets_.back();
  for (std::vector<double>* list : {&value_, &constant_, &residual_, &size_}) list->resize(rows);
  place_.resize(rows, -1);
  parts_.reserve((weights_.size() + most) * columns());
}

size_t EdgeMatrix::layer_of(size_t row) const {
  if (is_target(row)) return layers();
  const auto above = std::upper_bound(offsets_.begin(), offsets_.end(), row - weights_.size());
  return static_cast<size_t>(above - offsets_.begin()) - 1;
}

void EdgeMatrix::set_row(size_t row, const double* parts, double constant) {
  place_[row] = static_cast<ptrdiff_t>(parts_.size() / columns());
  constant_[row] = constant;
  double sum = constant;
  double squares = constant * constant + value_[row] * value_[row];
  for (size_t column = 0; column < columns(); ++column) {
    sum += parts[column];
    squares += parts[column] * parts[column];
    size_[row] += std::abs(parts[column]);
    parts_.push_back(static_cast<float>(parts[column]));
  }
  residual_[row] = squares == 0 ? 0 : std::abs(sum - value_[row]) / std::sqrt(squares);
}

std::vector<double> EdgeMatrix::influences() const {
  std::vector<double> found(offsets_.back(), 0.0);
  const size_t targets = weights_.size();
  const auto pass = [&](size_t row, double received) {
    if (received == 0 || size_[row] == 0) return;
    const float* parts = parts_.data() + static_cast<size_t>(place_[row]) * columns() + tokens_;
    const double share = received / size_[row];
    // What a feature reads is below it.
    const size_t below = is_target(row) ? offsets_.back() : offsets_[layer_of(row)];
    for (size_t i = 0; i < below; ++i) found[i] += share * static_cast<double>(std::abs(parts[i]));
  };
  for (size_t target = 0; target < targets; ++target) pass(target, weights_[target]);
  for (size_t i = offsets_.back(); i-- > 0;) {
    if (place_[targets + i] >= 0) pass(targets + i, found[i]);
  }
  return found;
}

std::vector<size_t> EdgeMatrix::strongest_unknown(size_t count) const {
  const std::vector<double> influence = influences();
  std::vector<size_t> unknown;
  for (size_t i = 0; i < influence.size(); ++i) {
    if (place_[weights_.size() + i] < 0) unknown.push_back(i);
  }
  count = std::min(count, unknown.size());
  std::partial_sort(
      unknown.begin(), unknown.begin() + static_cast<ptrdiff_t>(count), unknown.end(),
      [&](size_t a, size_t b) { return influence[a] != influence[b] ? influence[a] > influence[b] : a < b; });
  unknown.resize(count);
  for (size_t& row : unknown) row += weights_.size();
  return unknown;
}

TranscoderEdges EdgeMatrix::finish() const {
  const size_t targets = weights_.size();
  TranscoderEdges found;
  std::vector<size_t> rows(targets);
  std::iota(rows.begin(), rows.end(), 0);
  for (size_t i = 0; i < offsets_.back(); ++i) {
    if (place_[targets + i] < 0) continue;
    found.nodes.push_back(i);
    rows.push_back(targets + i);
  }
  const size_t left = layers() * tokens_;
  found.columns = tokens_ + found.nodes.size() + 3 * left;
  found.parts.reserve(rows.size() * found.columns);
  std::vector<double> rest(left);
  for (const size_t row : rows) {
    const float* parts = parts_.data() + static_cast<size_t>(place_[row]) * columns();
    const float* features = parts + tokens_;
    found.parts.insert(found.parts.end(), parts, features);
    for (const size_t node : found.nodes) found.parts.push_back(features[node]);
    std::fill(rest.begin(), rest.end(), 0.0);
    for (size_t layer = 0; layer < layers(); ++layer) {
      for (size_t i = offsets_[layer]; i < offsets_[layer + 1]; ++i) {
        if (place_[targets + i] < 0) rest[layer * tokens_ + token_of_[i]] += static_cast<double>(features[i]);
      }
    }
    for (const double sum : rest) found.parts.push_back(static_cast<float>(sum));
    found.parts.insert(found.parts.end(), features + offsets_.back(), features + offsets_.back() + 2 * left);
    found.values.push_back(value_[row]);
    found.constants.push_back(constant_[row]);
    found.residuals.push_back(residual_[row]);
  }
  return found;
}

}  // namespace tapline
