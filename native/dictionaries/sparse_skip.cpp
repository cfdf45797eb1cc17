#include <algorithm>

#include "dictionaries/sparse_model.h"
#include "numbers/flush_denormals.h"

// The skip term of a transcoder: skip x in its prediction, and its update.

namespace tapline::dictionaries {

namespace {

constexpr int kWidth = FloatPanels::kWidth;

}  // namespace

// Adds skip x to the errors of rows [from, to).
void SparseModel::add_skip(const RowBatch& x, int from, int to) {
  alignas(64) float piece[kRowsPerTask * kWidth];
  for (int block = 0; block < x.panels.panels(); ++block) {
    product(x.panels, from, to, skip_panel(block), piece);
    for (int i = from; i < to; ++i) {
      kernels_.add_scaled(piece + static_cast<std::ptrdiff_t>(i - from) * kWidth, 1.0F, 1,
                          error_row(i) + block * kWidth);
    }
  }
}

// Copies the errors of rows [from, to) into panels for products.
void SparseModel::pack_errors(int from, int to) {
  for (int block = 0; block < error_panels_.panels(); ++block) {
    for (int i = from; i < to; ++i)
      std::copy_n(error_row(i) + block * kWidth, kWidth, error_panels_.panel(block, i));
  }
}

void SparseModel::update_skip(const RowBatch& x, int rows, float scale, const AdamStep& adam) {
  const int blocks = x.panels.panels();
  team_.parallel_for(blocks * blocks, [&](int tile) {
    const FlushDenormals flush;
    const int output = tile / blocks;
    const int input = tile % blocks;
    alignas(64) float gradient[kWidth * kWidth];
    kernels_.of_floats.product(x.panels.panel(input), error_panels_.panel(output), rows, gradient, false);
    skip_.update(kernels_, place(output * kWidth, input * kWidth), gradient, scale, nullptr, kWidth, adam);
  });
}

}  // namespace tapline::dictionaries
