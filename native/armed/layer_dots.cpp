#include "armed/layer_dots.h"

#include <algorithm>

namespace tapline {

size_t LayerDots::grown(size_t count) const {
  if (count <= size_) return size_;
  size_t size = std::max<size_t>(1, size_);
  while (size < count) size *= 2;
  return size;
}

void LayerDots::arm(size_t size) {
  size_ = size;
  if (size <= keys_.size()) return;
  vectors_ = Table(backend_, GGML_TYPE_F32, n_embd_, static_cast<int64_t>(size));
  const std::vector<float> zeros(size * static_cast<size_t>(n_embd_), 0);
  ggml_backend_tensor_set(vectors_.tensor(), zeros.data(), 0, zeros.size() * sizeof(float));
  keys_.assign(size, std::nullopt);
  used_.assign(size, false);
}

std::optional<size_t> LayerDots::find(const Dot& dot) {
  const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(size_);
  const auto found = std::find(keys_.begin(), end, std::optional(dot.key));
  if (found == end) return std::nullopt;
  const auto at = static_cast<size_t>(found - keys_.begin());
  used_[at] = true;
  return at;
}

size_t LayerDots::add(const Dot& dot) {
  size_t at = 0;
  while (used_[at]) ++at;
  std::vector<float> values(static_cast<size_t>(n_embd_));
  for (size_t i = 0; i < values.size(); ++i) values[i] = dot.value(i);
  vectors_.set_row(static_cast<int64_t>(at), values.data());
  keys_[at] = dot.key;
  used_[at] = true;
  return at;
}

ggml_tensor* LayerDots::extend(ggml_context* ctx, ggml_tensor* output, size_t at) const {
  ggml_tensor* const vector = ggml_view_1d(ctx, vectors_.tensor(), n_embd_, at * vectors_.tensor()->nb[1]);
  return ggml_sum_rows(ctx, ggml_mul(ctx, output, vector));
}

}  // namespace tapline
