#pragma once

#include <cstddef>
#include <cstdint>

#include "base/mapped_file.h"
#include "base/narrow.h"

namespace tapline::dictionaries {

enum class NumberType : uint8_t { kF32, kF16, kBf16 };

/// A matrix in a mapped file, [rows, width], of which parts of rows are read.
class StoredMatrix {
 public:
  /// Throws kInvalidArgument if it does not lie in the file.
  StoredMatrix(const MappedFile& file, double offset, NumberType type, size_t rows, size_t width)
      : data_(type == NumberType::kF32 ? static_cast<const void*>(file.floats(offset, rows * width))
                                       : file.halves(offset, rows * width)),
        type_(type),
        width_(width) {}

  /// Columns [from, from + count) of a row: in the file, or converted in `buffer`, [count], if they are not
  /// float32.
  const float* read(size_t row, size_t from, size_t count, float* buffer) const {
    const size_t at = row * width_ + from;
    if (type_ == NumberType::kF32) return static_cast<const float*>(data_) + at;
    const uint16_t* values = static_cast<const uint16_t*>(data_) + at;
    widen(values, count, type_ == NumberType::kF16 ? NarrowType::kF16 : NarrowType::kBf16, buffer);
    return buffer;
  }

  size_t row_bytes() const { return width_ * (type_ == NumberType::kF32 ? 4 : 2); }

 private:
  const void* data_;
  NumberType type_;
  size_t width_;
};

}  // namespace tapline::dictionaries
