#pragma once

#include <cstddef>
#include <vector>

namespace tapline {

/// One change of one row of a block output: h' = scale * h + offset.
///
/// Every intervention is this affine form: scale by s is (s, 0); ablate is (1 - s, 0); patch is
/// (1 - s, s * donor); steer is (1, s * unit direction).
struct RowEdit {
  int batch_index = 0;  // position of the token in the batch given to llama_decode
  float scale = 1.0F;
  std::vector<float> offset;  // empty: zero

  void apply(float* row, size_t n_embd) const {
    if (scale != 1.0F) {
      for (size_t i = 0; i < n_embd; ++i) row[i] *= scale;
    }
    if (!offset.empty()) {
      for (size_t i = 0; i < n_embd; ++i) row[i] += offset[i];
    }
  }
};

}  // namespace tapline
