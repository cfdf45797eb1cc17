#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml-cpp.h"

namespace tapline {

/// A tensor in a device's memory that belongs to no model and no graph.
class Table {
 public:
  Table() = default;
  /// `rows` rows of `width` values. Throws kOutOfMemory.
  Table(ggml_backend_t backend, ggml_type type, int64_t width, int64_t rows);

  ggml_tensor* tensor() const { return tensor_; }
  explicit operator bool() const { return tensor_ != nullptr; }
  void set_row(int64_t row, const void* values);

 private:
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
  ggml_tensor* tensor_ = nullptr;
};

}  // namespace tapline
