#include "armed/table.h"

#include "base/error.h"
#include "ggml-alloc.h"

namespace tapline {

Table::Table(ggml_backend_t backend, ggml_type type, int64_t width, int64_t rows) {
  context_.reset(ggml_init({ggml_tensor_overhead(), nullptr, /*no_alloc=*/true}));
  tensor_ = ggml_new_tensor_2d(context_.get(), type, width, rows);
  buffer_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), backend));
  if (!buffer_) throw Error(ErrorCode::kOutOfMemory, "There is not enough memory on the device for edits.");
}

void Table::set_row(int64_t row, const void* values) {
  ggml_backend_tensor_set(tensor_, values, static_cast<size_t>(row) * tensor_->nb[1], tensor_->nb[1]);
}

}  // namespace tapline
