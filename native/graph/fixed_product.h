#pragma once

#include "base/thread_team.h"
#include "numbers/linear_algebra.h"

namespace tapline {

/// A product of many rows with one matrix, whose panels are arranged once. T is float or double.
template <class T>
class FixedProduct {
 public:
  /// Of `matrix`, [height, width]: y = matrix x, from rows of `width` to rows of `height`; with `transposed`,
  /// y = matrix^T x, from `height` to `width`.
  template <class M>
  FixedProduct(const M* matrix, int height, int width, bool transposed, ThreadTeam& team);

  int in() const { return panels_.depth(); }
  int out() const { return panels_.rows(); }
  /// `x` is [rows, in()], `y` is [rows, out()]. A row's result does not depend on the others.
  void apply(const T* x, int rows, T* y, ThreadTeam& team) const;

 private:
  struct Task;
  /// Panels [from, to) of the matrix, and of the arranged rows.
  void multiply(const Task& task, const T* arranged, int rows, T* y) const;

  PanelMatrix<T> panels_;
};

}  // namespace tapline
