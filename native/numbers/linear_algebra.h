#pragma once

#include <functional>
#include <vector>

#include "base/thread_team.h"
#include "numbers/aligned_array.h"
#include "numbers/kernels.h"

namespace tapline {

/// A dense matrix in panels of W rows (32 of float, 16 of double): element (row, k) lies at
/// panel(row / W)[k * W + row % W]. Rows are padded with zeros to a multiple of W. See kernels.h for why.
template <class T>
class PanelMatrix {
 public:
  static constexpr int kWidth = kPanel<T>;

  PanelMatrix(int rows, int depth)
      : rows_(rows),
        depth_(depth),
        data_(static_cast<size_t>(round_up(rows, kWidth)) * static_cast<size_t>(depth)) {}
  PanelMatrix(int rows, int depth, Unwritten)
      : rows_(rows),
        depth_(depth),
        data_(static_cast<size_t>(round_up(rows, kWidth)) * static_cast<size_t>(depth), Unwritten{}) {}

  int rows() const { return rows_; }
  int depth() const { return depth_; }
  int panels() const { return round_up(rows_, kWidth) / kWidth; }
  /// Rows with their padding.
  int padded() const { return panels() * kWidth; }
  T* panel(int index) { return data_.data() + offset(index); }
  const T* panel(int index) const { return data_.data() + offset(index); }
  T& at(int row, int k) { return panel(row / kWidth)[static_cast<size_t>(k) * kWidth + row % kWidth]; }
  T at(int row, int k) const { return panel(row / kWidth)[static_cast<size_t>(k) * kWidth + row % kWidth]; }

 private:
  size_t offset(int panel) const { return static_cast<size_t>(panel) * kWidth * static_cast<size_t>(depth_); }

  int rows_;
  int depth_;
  AlignedArray<T> data_;
};

/// Writes columns from ... from + count - 1 of one panel of a matrix that is never stored as a whole.
template <class T>
using FillSlice = std::function<void(int panel, int from, int count, T* to)>;

/// x x^T, a square matrix with the padded rows of x, for an x [rows, depth] that `fill` writes slice by
/// slice.
template <class T>
PanelMatrix<T> gram(int rows, int depth, const FillSlice<T>& fill, ThreadTeam& team);

/// Only the lower triangle of it (whole blocks), into `out`; one thread.
template <class T>
void gram_lower(int rows, int depth, const FillSlice<T>& fill, PanelMatrix<T>& out);

/// y = x v; `v` has x.depth() elements, `y` gets x.padded().
template <class T>
void times(const PanelMatrix<T>& x, const T* v, T* y);

/// y = x^T v; `v` has x.padded() elements, `y` gets x.depth().
template <class T>
void transposed_times(const PanelMatrix<T>& x, const T* v, T* y);

/// Blocked Cholesky factor of a symmetric positive definite PanelMatrix with rows() == depth(), a multiple
/// of a panel's width.
template <class T>
class Cholesky {
 public:
  /// Factors `matrix` in place, reading only its lower triangle. ok() is false if it is not numerically
  /// positive definite. The matrix must outlive this object. `team` may be null: one thread.
  Cholesky(PanelMatrix<T>& matrix, ThreadTeam* team);

  bool ok() const { return ok_; }

  /// Solves in place for one right-hand side.
  void solve(T* b) const;

 private:
  void subtract_known(int row_block, int column_block);
  void finish_row(int row_block, int column_block);

  static constexpr int kWidth = PanelMatrix<T>::kWidth;
  static constexpr int kBlock = kWidth * kWidth;

  PanelMatrix<T>& factor_;
  AlignedArray<T> inverses_;  // of the diagonal blocks, transposed: [block][k][j] = inverse(j, k)
  bool ok_ = true;
};

}  // namespace tapline
