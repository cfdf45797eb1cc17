#pragma once

#include <functional>
#include <vector>

#include "numbers/examples.h"
#include "numbers/linear_algebra.h"

namespace tapline::probes {

/// The training examples' activations as (x - mean) / std, computed from the activations on each use: reading
/// single precision again costs less than storing double.
class StandardisedExamples {
 public:
  /// Statistics of the training examples: population standard deviation, at least `std_floor`. `examples`
  /// must outlive this object.
  StandardisedExamples(const Examples& examples, double std_floor, ThreadTeam& team);

  int rows() const { return static_cast<int>(rows_.size()); }
  int depth() const { return examples_.hidden; }
  /// Which example a row is.
  int example(int row) const { return rows_[static_cast<size_t>(row)]; }
  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& std() const { return std_; }

  /// Columns from ... from + count - 1 of a panel's rows, laid out as in PanelMatrix<T>; computed in double,
  /// rounded once.
  template <class T>
  void fill(int panel, int from, int count, T* to) const;

  /// y = x v; `v` has depth() elements, `y` gets rows(). `team` may be null: one thread.
  void times(const std::vector<double>& v, double* y, ThreadTeam* team) const;

  /// y = x^T v; `v` has rows() elements, `y` gets depth(). `team` may be null: one thread.
  void transposed_times(const double* v, double* y, ThreadTeam* team) const;

  /// weight . (x - mean) / std for every example of the data set, including held-out ones. `team` may be
  /// null: one thread.
  std::vector<double> products(const std::vector<double>& weight, ThreadTeam* team) const;

 private:
  const float* features(int example) const;
  void dots(const std::vector<double>& weight, int count, const std::function<int(int)>& example_of,
            double* y, ThreadTeam* team) const;

  const Examples& examples_;
  std::vector<int> rows_;
  std::vector<double> mean_, std_, inverse_std_;
};

}  // namespace tapline::probes
