#include "base/narrow.h"

#include <cstring>
#include <string>

#include "base/error.h"
#include "ggml-cpu.h"
#include "ggml.h"

namespace tapline {

std::vector<uint16_t> narrow(const float* values, size_t count, NarrowType type) {
  std::vector<uint16_t> out(count);
  const bool half = type == NarrowType::kF16;
  if (half) {
    ggml_fp32_to_fp16_row(values, out.data(), static_cast<int64_t>(count));
  } else {
    static_assert(sizeof(ggml_bf16_t) == sizeof(uint16_t));
    ggml_fp32_to_bf16_row(values, reinterpret_cast<ggml_bf16_t*>(out.data()), static_cast<int64_t>(count));
  }
  const unsigned exponent = half ? 0x7C00U : 0x7F80U;  // all ones: infinity or NaN
  for (size_t i = 0; i < count; ++i) {
    if ((out[i] & exponent) != exponent) continue;
    throw_error(ErrorCode::kCompute, "A value of ", values[i], " is beyond the range of ",
                half ? "F16, 65504." : "BF16.");
  }
  return out;
}

void widen(const uint16_t* values, size_t count, NarrowType type, float* to) {
  if (type == NarrowType::kF16) {
    // Processors that convert eight at a time look the rest of a row up in a table that this creates.
    static const bool ready = (ggml_cpu_init(), true);
    static_cast<void>(ready);
    ggml_cpu_fp16_to_fp32(values, to, static_cast<int64_t>(count));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = static_cast<uint32_t>(values[i]) << 16U;
    std::memcpy(to + i, &bits, sizeof bits);
  }
}

}  // namespace tapline
