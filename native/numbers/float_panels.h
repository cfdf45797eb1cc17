#pragma once

#include <cstddef>

#include "numbers/aligned_array.h"
#include "numbers/kernels.h"

namespace tapline {

/// A float matrix in column panels of 32, padded with zero columns: element (row, column) lies at
/// panel(column / 32)[row * 32 + column % 32].
class FloatPanels {
 public:
  static constexpr int kWidth = kPanel<float>;

  FloatPanels() = default;
  FloatPanels(int rows, int columns)
      : rows_(rows),
        columns_(round_up(columns, kWidth)),
        data_(static_cast<size_t>(rows) * static_cast<size_t>(columns_)) {}

  int rows() const { return rows_; }
  int panels() const { return columns_ / kWidth; }
  /// Distance between panels, in elements.
  std::ptrdiff_t stride() const { return static_cast<std::ptrdiff_t>(rows_) * kWidth; }
  float* panel(int index, int row = 0) { return data_.data() + index * stride() + row * kWidth; }
  const float* panel(int index, int row = 0) const { return data_.data() + index * stride() + row * kWidth; }
  float& at(int row, int column) { return panel(column / kWidth, row)[column % kWidth]; }
  float at(int row, int column) const { return panel(column / kWidth, row)[column % kWidth]; }

 private:
  int rows_ = 0;
  int columns_ = 0;
  AlignedArray<float> data_;
};

}  // namespace tapline
