#pragma once

#include <cstdint>

#include "armed/table.h"

namespace tapline {

/// The rows of one tensor in a batch: a graph copies them within the device's memory, and after the pass they
/// are fetched together. So the device neither stops at the tensor nor waits for the host.
class RowCopies {
 public:
  /// The number of nodes that this adds to a graph.
  static constexpr int kNodes = 1;

  bool armed() const { return armed_; }
  /// Makes room for `rows` rows of `width` numbers. Throws kOutOfMemory.
  void arm(ggml_backend_t backend, int64_t width, int64_t rows);
  /// The memory remains, for the next time.
  void disarm() { armed_ = false; }

  /// Adds the node that copies `values`, [width, n], to the rows with the numbers `at`, [n].
  void extend(ggml_context* ctx, ggml_cgraph* graph, ggml_tensor* values, ggml_tensor* at) const;
  /// Starts to copy the first `rows` rows to the host. They are there once the device has been waited for.
  void fetch(int64_t rows);
  /// [rows, width]
  const float* values() const;

 private:
  ggml_backend_t backend_ = nullptr;
  Table table_;
  ggml_backend_buffer_ptr host_;
  bool armed_ = false;
};

}  // namespace tapline
