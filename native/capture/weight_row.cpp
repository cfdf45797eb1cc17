#include "capture/weight_row.h"

#include <cstring>
#include <utility>

#include "ggml-backend.h"

namespace tapline {

WeightRow weight_row(const ggml_tensor* weight, int64_t row, int64_t count) {
  const std::string name = "'" + std::string(weight->name) + "'";
  const ggml_backend_buffer_t buffer =
      weight->view_src != nullptr ? weight->view_src->buffer : weight->buffer;
  const std::string kind =
      buffer == nullptr ? "" : ggml_backend_buft_name(ggml_backend_buffer_get_type(buffer));
  if (buffer == nullptr || kind.find("REPACK") != std::string::npos)
    return {{}, "the rows of " + name + " are rearranged for this processor's products"};
  if (weight->ne[0] < count) return {{}, name + " is narrower than a state"};
  const auto to_float = ggml_get_type_traits(weight->type)->to_float;
  if (weight->type != GGML_TYPE_F32 && to_float == nullptr)
    return {{}, name + " has a type that cannot be read"};
  std::vector<uint8_t> raw(ggml_row_size(weight->type, count));
  ggml_backend_tensor_get(weight, raw.data(), static_cast<size_t>(row) * weight->nb[1], raw.size());
  std::vector<float> values(static_cast<size_t>(count));
  if (weight->type == GGML_TYPE_F32) {
    std::memcpy(values.data(), raw.data(), raw.size());
  } else {
    to_float(raw.data(), values.data(), count);
  }
  return {std::move(values), {}};
}

}  // namespace tapline
