#include "dictionaries/stored_matrix.h"

#include "base/narrow.h"

namespace tapline::dictionaries {

StoredMatrix::StoredMatrix(const MappedFile& file, double offset, NumberType type, size_t rows, size_t width)
    : data_(type == NumberType::kF32 ? static_cast<const void*>(file.floats(offset, rows * width))
                                     : file.halves(offset, rows * width)),
      type_(type),
      width_(width) {}

const float* StoredMatrix::read(size_t row, size_t from, size_t count, float* buffer) const {
  const size_t at = row * width_ + from;
  if (type_ == NumberType::kF32) return static_cast<const float*>(data_) + at;
  const uint16_t* values = static_cast<const uint16_t*>(data_) + at;
  widen(values, count, type_ == NumberType::kF16 ? NarrowType::kF16 : NarrowType::kBf16, buffer);
  return buffer;
}

}  // namespace tapline::dictionaries
