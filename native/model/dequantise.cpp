#include "model/dequantise.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "ggml.h"

namespace tapline {

void dequantise(const Weight& weight, const std::string& to) {
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
  std::ofstream out(std::filesystem::u8path(to), std::ios::binary | std::ios::app);
  // A few megabytes at a time.
  const int64_t step = std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, weight.row));
  std::vector<float> values;
  for (int64_t first = 0; first < weight.rows && out; first += step) {
    const int64_t count = std::min(step, weight.rows - first);
    const double offset = weight.offset + static_cast<double>(first) * static_cast<double>(row_bytes);
    const unsigned char* raw = file.bytes(offset, static_cast<size_t>(count) * row_bytes);
    const auto numbers = static_cast<size_t>(count * weight.row);
    const char* written = reinterpret_cast<const char*>(raw);
    if (type != GGML_TYPE_F32) {
      values.resize(numbers);
      to_float(raw, values.data(), static_cast<int64_t>(numbers));
      written = reinterpret_cast<const char*>(values.data());
    }
    out.write(written, static_cast<std::streamsize>(numbers * sizeof(float)));
  }
  out.flush();
  if (!out) throw_error(ErrorCode::kInvalidArgument, "'", to, "' cannot be written.");
}

}  // namespace tapline
