#include "armed/row_copies.h"

#include "base/error.h"

namespace tapline {

namespace {

/// Memory of the host into which the device copies directly, if it offers such memory: otherwise its driver
/// copies everything a second time.
ggml_backend_buffer_t host_memory(ggml_backend_t backend, size_t bytes) {
  ggml_backend_buffer_type_t type = ggml_backend_dev_host_buffer_type(ggml_backend_get_device(backend));
  ggml_backend_buffer_t found = type == nullptr ? nullptr : ggml_backend_buft_alloc_buffer(type, bytes);
  return found != nullptr ? found : ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), bytes);
}

}  // namespace

void RowCopies::arm(ggml_backend_t backend, int64_t width, int64_t rows) {
  if (!host_) {
    backend_ = backend;
    table_ = Table(backend, GGML_TYPE_F32, width, rows);
    host_.reset(host_memory(backend, ggml_nbytes(table_.tensor())));
    if (!host_) throw Error(ErrorCode::kOutOfMemory, "There is not enough memory for captured activations.");
  }
  armed_ = true;
}

void RowCopies::extend(ggml_context* ctx, ggml_cgraph* graph, ggml_tensor* values, ggml_tensor* at) const {
  ggml_build_forward_expand(graph, ggml_set_rows(ctx, table_.tensor(), values, at));
}

void RowCopies::fetch(int64_t rows) {
  ggml_tensor* const table = table_.tensor();
  ggml_backend_tensor_get_async(backend_, table, ggml_backend_buffer_get_base(host_.get()), 0,
                                static_cast<size_t>(rows) * table->nb[1]);
}

const float* RowCopies::values() const {
  return static_cast<const float*>(ggml_backend_buffer_get_base(host_.get()));
}

}  // namespace tapline
