#pragma once

#include <memory>
#include <vector>

#include "base/thread_team.h"
#include "capture/path_steps.h"
#include "graph/fixed_product.h"
#include "model/weight_file.h"

namespace tapline {

/// Steps on rows with the scales of their norms fixed at given rows, so that they are linear, with weights
/// dequantised. T is float or double.
template <class T>
class FrozenPath {
 public:
  /// `input` is [rows, width]: one row per token, at which the scales are fixed.
  FrozenPath(const std::vector<PathStep>& steps, const WeightFile& weights, std::vector<T> input, int rows,
             ThreadTeam& team);

  /// [rows, width after the steps], of the input.
  const std::vector<T>& output() const { return output_; }

  /// The linear functions before the steps that equal the given ones after them: turns `functions`, [count,
  /// rows, width after], into `before`, [count, rows, width before], and adds what biases contribute to each
  /// of them to `constants`, [count].
  void pull_back(const T* functions, int count, std::vector<T>& before, double* constants,
                 ThreadTeam& team) const;
  /// In place.
  void pull_back(std::vector<T>& functions, int count, double* constants, ThreadTeam& team) const;
  /// The same for single rows: `functions`, [rows, width after], each at one of the frozen rows; `constants`,
  /// [rows].
  void pull_rows_back(std::vector<T>& functions, const std::vector<int>& rows, double* constants,
                      ThreadTeam& team) const;
  /// What the steps make of a change of frozen rows, without what biases add: turns `x`, [rows, width
  /// before], into [rows, width after].
  void push(std::vector<T>& x, const std::vector<int>& rows, const WeightFile& weights,
            ThreadTeam& team) const;

 private:
  struct Step {
    PathStep plan;
    std::vector<T> values;                     // of a weight along the row: `in` of them
    std::vector<T> scales;                     // of a norm, [rows, groups]: 1 / its denominator
    std::unique_ptr<FixedProduct<T>> product;  // of the transposed matrix
  };

  void freeze(Step& step, const WeightFile& weights, std::vector<T>& x, ThreadTeam& team) const;
  /// `each` rows belong to one constant; their frozen rows are `at`, or 0, 1, … for each constant.
  void pull(const T* functions, int count, int each, const int* at, std::vector<T>& before, double* constants,
            ThreadTeam& team) const;
  void pull_row_back(const Step& step, int row, T* function, double& constant) const;

  int rows_;
  std::vector<Step> steps_;
  std::vector<T> output_;
};

}  // namespace tapline
