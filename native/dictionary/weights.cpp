#include "dictionary/weights.h"

#include <cstring>

#include "ggml-cpu.h"

namespace tapline::dictionary {

Weights::Weights(const MappedFile& file, double offset, WeightType type, size_t rows, size_t width)
    : data_(type == WeightType::kF32 ? static_cast<const void*>(file.floats(offset, rows * width))
                                     : file.halves(offset, rows * width)),
      type_(type),
      width_(width) {
  // Where the processor converts eight at a time, the rest of a row is looked up in a table that this makes.
  if (type == WeightType::kF16) ggml_cpu_init();
}

const float* Weights::read(size_t row, size_t from, size_t count, float* buffer) const {
  const size_t at = row * width_ + from;
  if (type_ == WeightType::kF32) return static_cast<const float*>(data_) + at;
  const uint16_t* values = static_cast<const uint16_t*>(data_) + at;
  if (type_ == WeightType::kF16) {
    ggml_cpu_fp16_to_fp32(values, buffer, static_cast<int64_t>(count));
    return buffer;
  }
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = static_cast<uint32_t>(values[i]) << 16U;
    std::memcpy(buffer + i, &bits, sizeof bits);
  }
  return buffer;
}

}  // namespace tapline::dictionary
