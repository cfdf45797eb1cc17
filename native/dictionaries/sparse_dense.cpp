#include <algorithm>
#include <numeric>

#include "dictionaries/sparse_model.h"
#include "dictionaries/sparse_scratch.h"
#include "numbers/flush_denormals.h"

// kRelu while many features fire: a step in five dense products. Although half of their numbers are zeros,
// they take less time than sums over active features.

namespace tapline::dictionaries {

namespace {

constexpr int kWidth = FloatPanels::kWidth;
/// Rows that are sampled to estimate how many features fire.
constexpr int kSample = 12;
/// The reciprocal of the share of active features from which dense products are used: a compromise. By
/// estimate they win from a third on if weights come from memory, and from a fifth on if they are in the
/// cache.
constexpr int kLeastShare = 4;

}  // namespace

// Samples only the first rows: this decides how a batch is computed, not the result.
bool SparseModel::many_fire(const RowBatch& x, int rows) {
  if (shape_.architecture != Architecture::kRelu || !dead_.empty()) return false;
  const int sample = std::min(rows, kSample);
  alignas(64) float h[kSample * kWidth];
  int fired = 0;
  for (int panel = 0; panel < panels_; ++panel) {
    multiply_encoder(x, 0, sample, panel, h);
    const float* bias = encoder_bias_.values.data() + panel * kWidth;
    for (int i = 0; i < sample * kWidth; ++i) fired += h[i] + bias[i % kWidth] > 0 ? 1 : 0;
  }
  return static_cast<int64_t>(fired) * kLeastShare >= static_cast<int64_t>(sample) * shape_.features;
}

void SparseModel::prepare_dense(int rows) {
  if (activations_.rows() < rows) {
    activations_ = FloatPanels(rows, shape_.features);
    error_panels_ = FloatPanels(rows, shape_.hidden);
  }
  if (decoder_panels_.rows() == 0) {
    decoder_panels_ = FloatPanels(padded_features_, shape_.hidden);
    decoder_turned_ = FloatPanels(padded_hidden_, shape_.features);
  }
  team_.parallel_for(panels_, [&](int panel) {
    for (int block = 0; block < decoder_panels_.panels(); ++block) {
      float* to = decoder_panels_.panel(block, panel * kWidth);
      for (int j = 0; j < kWidth; ++j)
        std::copy_n(decoder_row(panel * kWidth + j) + block * kWidth, kWidth, to + j * kWidth);
      kernels_.transpose(to, decoder_turned_.panel(panel, block * kWidth));
    }
  });
}

void SparseModel::dense_forward(const RowBatch& x, const RowBatch& y, int from, int to) {
  const int rows = to - from;
  for (int panel = 0; panel < panels_; ++panel) {
    float* f = activations_.panel(panel, from);
    multiply_encoder(x, from, to, panel, f);
    kernels_.bias_relu(f, encoder_bias_.values.data() + panel * kWidth, rows);
  }
  alignas(64) float squares[kRowsPerTask * kWidth / 2];
  std::fill_n(squares, rows * kWidth / 2, 0.0F);
  for (int block = 0; block < error_panels_.panels(); ++block) {
    float* errors = error_panels_.panel(block, from);
    product(activations_, from, to, decoder_panels_.panel(block), errors);
    if (shape_.skip) product(x.panels, from, to, skip_panel(block), errors, true);
    kernels_.residual(errors, decoder_bias_.values.data() + block * kWidth, y.panels.panel(block, from), rows,
                      squares);
  }
  for (int i = 0; i < rows; ++i) {
    const float* parts = squares + i * kWidth / 2;
    square_errors_[static_cast<size_t>(from + i)] = std::accumulate(parts, parts + kWidth / 2, 0.0F);
  }
}

size_t SparseModel::dense_step(const RowBatch& x, const RowBatch& y, int rows, float scale, float penalty,
                               const AdamStep& adam) {
  prepare_dense(rows);
  if (gradients_.rows() < rows) gradients_ = FloatPanels(rows, shape_.features);
  over_rows(rows, [&](int from, int to) {
    dense_forward(x, y, from, to);
    for (int panel = 0; panel < panels_; ++panel) {
      float* gradients = gradients_.panel(panel, from);
      product(error_panels_, from, to, decoder_turned_.panel(panel), gradients);
      kernels_.relu_backward(gradients, activations_.panel(panel, from), penalties_.data() + panel * kWidth,
                             scale, to - from);
    }
  });

  std::vector<size_t> active(static_cast<size_t>(panels_));
  std::vector<float> shrink(static_cast<size_t>(padded_features_));
  team_.parallel_for(panels_, [&](int panel) {
    const FlushDenormals flush;
    const int first = panel * kWidth;
    alignas(64) float bias_gradient[kWidth];
    kernels_.column_sums(gradients_.panel(panel), rows, bias_gradient);
    kernels_.column_sums(activations_.panel(panel), rows, activation_sums_.data() + first);
    const float* f = activations_.panel(panel);
    active[static_cast<size_t>(panel)] = static_cast<size_t>(
        std::count_if(f, f + static_cast<std::ptrdiff_t>(rows) * kWidth, [](float v) { return v > 0; }));
    for (size_t i = static_cast<size_t>(first); i < static_cast<size_t>(first + kWidth); ++i) {
      if (activation_sums_[i] > 0) last_fired_[i] = updates_;
      if (norms_[i] > 0) shrink[i] = penalty * activation_sums_[i] / norms_[i];
    }
    encoder_bias_.update(kernels_, static_cast<size_t>(first), bias_gradient, 1.0F, nullptr, 1, adam);
  });
  // The decoder's gradients overwrite its panels. Tiles that share the most data follow each other.
  const int blocks = error_panels_.panels();
  team_.parallel_for(panels_ * blocks, [&](int tile) {
    const FlushDenormals flush;
    const bool by_block = panels_ < blocks;
    const int panel = by_block ? tile % panels_ : tile / blocks;
    const int block = by_block ? tile / panels_ : tile % blocks;
    kernels_.of_floats.product(activations_.panel(panel), error_panels_.panel(block), rows,
                               decoder_panels_.panel(block, panel * kWidth), false);
    alignas(64) float gradient[kWidth * kWidth];
    kernels_.of_floats.product(x.panels.panel(block), gradients_.panel(panel), rows, gradient, false);
    encoder_.update(kernels_, place(panel * kWidth, block * kWidth), gradient, 1.0F, nullptr, kWidth, adam);
    if (panel > 0) return;
    kernels_.column_sums(error_panels_.panel(block), rows, gradient);
    decoder_bias_.update(kernels_, static_cast<size_t>(block * kWidth), gradient, scale, nullptr, 1, adam);
  });
  team_.parallel_for(shape_.features, [&](int f) {
    const FlushDenormals flush;
    const size_t at = static_cast<size_t>(f) * static_cast<size_t>(padded_hidden_);
    for (int block = 0; block < blocks; ++block) {
      decoder_.update(kernels_, at + static_cast<size_t>(block * kWidth), decoder_panels_.panel(block, f),
                      scale, &shrink[static_cast<size_t>(f)], 1, adam);
    }
    measure_norm(f);
  });
  if (shape_.skip) update_skip(x, rows, scale, adam);
  return std::accumulate(active.begin(), active.end(), size_t{0});
}

}  // namespace tapline::dictionaries
