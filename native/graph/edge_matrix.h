#pragma once

#include <cstddef>
#include <vector>

namespace tapline {

struct TranscoderEdges;

/// Edges into targets and into those active features whose rows are known, from everything. Rows are
/// numbered: targets, then all active features.
class EdgeMatrix {
 public:
  /// `offsets` has a layer's first active feature among all, and their number at the end; `weights` are of
  /// the targets' influence; at most `most` features get rows.
  EdgeMatrix(std::vector<size_t> offsets, size_t tokens, std::vector<double> weights, size_t most);

  bool is_target(size_t row) const { return row < weights_.size(); }
  /// The number of layers for a target.
  size_t layer_of(size_t row) const;
  size_t within_layer(size_t row) const { return row - weights_.size() - offsets_[layer_of(row)]; }

  size_t columns() const { return rounding_column(layers(), 0); }
  size_t feature_column(size_t layer, size_t i) const { return tokens_ + offsets_[layer] + i; }
  size_t error_column(size_t layer, size_t token) const {
    return tokens_ + offsets_.back() + layer * tokens_ + token;
  }
  size_t rounding_column(size_t layer, size_t token) const { return error_column(layers() + layer, token); }

  void set_value(size_t row, double value) { value_[row] = value; }
  /// `parts` has all columns.
  void set_row(size_t row, const double* parts, double constant);

  /// The features without rows that have most influence on the targets through known rows.
  std::vector<size_t> strongest_unknown(size_t count) const;
  /// The edges between known rows; other features' parts are summed up by layer and token.
  TranscoderEdges finish() const;
  /// The token of each active feature, needed by finish().
  void set_tokens(std::vector<size_t> tokens) { token_of_ = std::move(tokens); }

 private:
  size_t layers() const { return offsets_.size() - 1; }
  /// By feature, from the targets down through known rows.
  std::vector<double> influences() const;

  std::vector<size_t> offsets_;
  size_t tokens_;
  std::vector<double> weights_;
  std::vector<size_t> token_of_;
  std::vector<double> value_;     // by row
  std::vector<double> constant_;  // by row
  std::vector<double> residual_;  // by row
  std::vector<double> size_;      // by row: the sum of its parts without signs
  std::vector<ptrdiff_t> place_;  // by row: where its parts are; -1 if they are not known
  std::vector<float> parts_;      // [known rows, columns]
};

}  // namespace tapline
