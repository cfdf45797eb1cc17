#pragma once

#include <cstddef>
#include <cstdint>

#include "base/mapped_file.h"

namespace tapline::dictionaries {

/// How a file holds numbers.
enum class NumberType : uint8_t { kF32, kF16, kBf16 };

/// A matrix in a mapped file, [rows, width], read a piece of a row at a time.
class StoredMatrix {
 public:
  /// Throws kInvalidArgument where it does not lie in the file.
  StoredMatrix(const MappedFile& file, double offset, NumberType type, size_t rows, size_t width);

  /// Columns [from, from + count) of a row: where they lie, or in `buffer`, [count], where they are no
  /// float32.
  const float* read(size_t row, size_t from, size_t count, float* buffer) const;

  size_t row_bytes() const { return width_ * (type_ == NumberType::kF32 ? 4 : 2); }

 private:
  const void* data_;
  NumberType type_;
  size_t width_;
};

}  // namespace tapline::dictionaries
