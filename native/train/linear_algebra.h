#pragma once

#include <functional>
#include <vector>

#include "base/thread_team.h"
#include "train/aligned_array.h"
#include "train/kernels.h"

namespace tapline::train {

/// A dense double matrix in panels of 16 rows: element (row, k) lies at panel(row / 16)[k * 16 + row % 16].
/// Rows are padded with zeros to a multiple of 16. See kernels.h for why.
class PanelMatrix {
 public:
  static constexpr int kWidth = kPanel<double>;

  PanelMatrix(int rows, int depth)
      : rows_(rows), depth_(depth), data_(static_cast<size_t>(round_up(rows, kWidth)) * depth) {}

  int rows() const { return rows_; }
  int depth() const { return depth_; }
  int panels() const { return round_up(rows_, kWidth) / kWidth; }
  double* panel(int index) { return data_.data() + static_cast<size_t>(index) * kWidth * depth_; }
  const double* panel(int index) const { return data_.data() + static_cast<size_t>(index) * kWidth * depth_; }
  double& at(int row, int k) { return panel(row / kWidth)[static_cast<size_t>(k) * kWidth + row % kWidth]; }
  double at(int row, int k) const {
    return panel(row / kWidth)[static_cast<size_t>(k) * kWidth + row % kWidth];
  }

 private:
  int rows_;
  int depth_;
  AlignedArray<double> data_;
};

/// Writes columns from ... from + count - 1 of one panel of a matrix that exists nowhere as a whole.
using FillSlice = std::function<void(int panel, int from, int count, double* to)>;

/// x x^T, a square matrix of round_up(rows, 16), for an x [rows, depth] that `fill` makes slice by slice.
PanelMatrix gram(int rows, int depth, const FillSlice& fill, ThreadTeam& team);

/// Only the lower triangle of x x^T (whole 16 x 16 blocks), into `out`; one thread.
void gram_lower(const PanelMatrix& x, PanelMatrix& out);

/// y = x v; `v` has x.depth() elements, `y` gets x.panels() * 16.
void times(const PanelMatrix& x, const double* v, double* y);

/// y = x^T v; `v` has x.panels() * 16 elements, `y` gets x.depth().
void transposed_times(const PanelMatrix& x, const double* v, double* y);

/// Blocked Cholesky factor of a symmetric positive definite PanelMatrix with rows() == depth(), a multiple
/// of 16.
class Cholesky {
 public:
  /// Factors `matrix` in place, of which only the lower triangle is read. ok() is false when it is not
  /// numerically positive definite. The matrix must outlive this object. `team` may be null: one thread.
  Cholesky(PanelMatrix& matrix, ThreadTeam* team);

  bool ok() const { return ok_; }

  /// Solves in place for one right-hand side.
  void solve(double* b) const;

 private:
  void subtract_known(int row_block, int column_block);
  void finish_row(int row_block, int column_block);
  bool factor_diagonal_block(int block);

  PanelMatrix& factor_;
  std::vector<double> inverses_;  // of the diagonal blocks, transposed: [block][k][j] = inverse(j, k)
  bool ok_ = true;
};

}  // namespace tapline::train
