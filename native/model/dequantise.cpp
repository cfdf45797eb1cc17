#include "model/dequantise.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "ggml.h"

namespace tapline {

void each_dequantised(const Weight& weight,
                      const std::function<void(const float* values, int64_t first, int64_t count)>& take) {
  if (weight.type < 0 || weight.type >= GGML_TYPE_COUNT)
    throw_error(ErrorCode::kInvalidArgument, "ggml has no type ", weight.type, ".");
  const auto type = static_cast<ggml_type>(weight.type);
  const auto to_float = ggml_get_type_traits(type)->to_float;
  const int64_t block = ggml_blck_size(type);
  if ((type != GGML_TYPE_F32 && to_float == nullptr) || block == 0 || weight.row % block != 0)
    throw_error(ErrorCode::kInvalidArgument, "Weights of type ", ggml_type_name(type), " with rows of ",
                weight.row, " cannot be converted to floats.");
  const MappedFile file(weight.path);
  const size_t row_bytes = ggml_row_size(type, weight.row);
  const int64_t step = std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, weight.row));
  std::vector<float> values;
  for (int64_t first = 0; first < weight.rows; first += step) {
    const int64_t count = std::min(step, weight.rows - first);
    const double offset = weight.offset + static_cast<double>(first) * static_cast<double>(row_bytes);
    const unsigned char* raw = file.bytes(offset, static_cast<size_t>(count) * row_bytes);
    const auto numbers = static_cast<size_t>(count * weight.row);
    if (type == GGML_TYPE_F32) {
      take(reinterpret_cast<const float*>(raw), first, count);
      continue;
    }
    values.resize(numbers);
    to_float(raw, values.data(), static_cast<int64_t>(numbers));
    take(values.data(), first, count);
  }
}

void dequantise(const Weight& weight, const std::string& to) {
  std::ofstream out(std::filesystem::u8path(to), std::ios::binary | std::ios::app);
  each_dequantised(weight, [&](const float* values, int64_t, int64_t count) {
    const auto numbers = static_cast<size_t>(count * weight.row);
    out.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(numbers * sizeof(float)));
  });
  out.flush();
  if (!out) throw_error(ErrorCode::kInvalidArgument, "'", to, "' cannot be written.");
}

}  // namespace tapline
