#include <algorithm>
#include <cmath>
#include <numeric>

#include "dictionaries/sparse_model.h"
#include "dictionaries/sparse_scratch.h"

// The backward half of a step: gradients of active features, and updates of the weights.

namespace tapline::dictionaries {

namespace {

constexpr int kWidth = FloatPanels::kWidth;
/// Bytes of errors, and of x, that stay in the cache while the features of a panel collect their gradients.
constexpr size_t kBlockBytes = size_t{128} * 1024;

}  // namespace

// Gradients of the loss by the active features of rows [from, to).
void SparseModel::differentiate_rows(int from, int to, float scale, float aux_scale) {
  const int blocks = padded_hidden_ / kWidth;
  for (std::vector<Entry> Row::*list : {&Row::active, &Row::near}) {
    over_entries(from, to, list, [&](int row, Entry& entry) {
      entry.gradient = scale * kernels_.dot(error_row(row), decoder_row(entry.feature), blocks) +
                       penalties_[static_cast<size_t>(entry.feature)];
    });
  }
  if (dead_.empty()) return;
  for (int i = from; i < to; ++i) {
    // The dead features' sum against y - y', which counts as constant.
    Row& own = rows_[static_cast<size_t>(i)];
    float* left = aux_errors_.data() + static_cast<size_t>(i) * static_cast<size_t>(padded_hidden_);
    std::copy_n(error_row(i), padded_hidden_, left);
    for (const Entry& entry : own.aux)
      kernels_.add_scaled(decoder_row(entry.feature), entry.value, blocks, left);
    for (Entry& entry : own.aux)
      entry.gradient = aux_scale * kernels_.dot(left, decoder_row(entry.feature), blocks);
  }
}

void SparseModel::index_by_feature(int rows) {
  use_starts_.assign(static_cast<size_t>(padded_features_) + 1, 0);
  const auto each = [&](const auto& visit) {
    for (int i = 0; i < rows; ++i) {
      const Row& row = rows_[static_cast<size_t>(i)];
      for (const Entry& entry : row.active) visit(i, entry, Kind::kActive);
      for (const Entry& entry : row.near) visit(i, entry, Kind::kNear);
      for (const Entry& entry : row.aux) visit(i, entry, Kind::kAux);
    }
  };
  each([&](int, const Entry& entry, Kind kind) {
    ++use_starts_[static_cast<size_t>(entry.feature) + 1];
    if (kind == Kind::kActive) last_fired_[static_cast<size_t>(entry.feature)] = updates_;
  });
  std::partial_sum(use_starts_.begin(), use_starts_.end(), use_starts_.begin());
  uses_.resize(use_starts_.back());
  std::vector<size_t> next(use_starts_.begin(), use_starts_.end() - 1);
  each([&](int row, const Entry& entry, Kind kind) {
    uses_[next[static_cast<size_t>(entry.feature)]++] = {row, kind, entry.value, entry.gradient};
  });
}

// Gradients and updates of 32 features.
void SparseModel::update_panel(const RowBatch& x, int panel, int rows, float scale, float aux_scale,
                               float penalty, const AdamStep& adam, Scratch& scratch) {
  const auto stride = static_cast<size_t>(padded_hidden_);
  const int blocks = padded_hidden_ / kWidth;
  const size_t size = stride * kWidth;
  for (AlignedArray<float>* array : {&scratch.encoder_gradient, &scratch.decoder_gradient, &scratch.turned}) {
    if (array->size() != size) *array = AlignedArray<float>(size);
  }
  std::fill_n(scratch.encoder_gradient.data(), size, 0.0F);
  std::fill_n(scratch.decoder_gradient.data(), size, 0.0F);
  const bool penalised = shape_.architecture == Architecture::kRelu;
  alignas(64) float bias_gradient[kWidth] = {};
  const int first = panel * kWidth;
  const int last = std::min(first + kWidth, shape_.features);
  float* activation_sums = activation_sums_.data() + first;
  std::fill_n(activation_sums, kWidth, 0.0F);
  size_t next[kWidth];
  std::copy_n(use_starts_.begin() + first, last - first, next);
  // If many rows use a panel, only some at a time, so that they are in the cache for all of its features.
  // Each feature's sum has the same order either way.
  const size_t uses = use_starts_[static_cast<size_t>(last)] - use_starts_[static_cast<size_t>(first)];
  const int rows_at_once = std::max(1, static_cast<int>(kBlockBytes / (stride * sizeof(float))));
  const bool many =
      uses >= static_cast<size_t>(kWidth) * static_cast<size_t>((rows + rows_at_once - 1) / rows_at_once);
  const int step = many ? rows_at_once : rows;
  for (int row_end = std::min(step, rows);; row_end = std::min(row_end + step, rows)) {
    for (int f = first; f < last; ++f) {
      const int j = f - first;
      float* encoder = scratch.encoder_gradient.data() + static_cast<size_t>(j) * stride;
      float* decoder = scratch.decoder_gradient.data() + static_cast<size_t>(j) * stride;
      size_t& at = next[j];
      for (; at < use_starts_[static_cast<size_t>(f) + 1] && uses_[at].row < row_end; ++at) {
        const Use& use = uses_[at];
        if (use.kind == Kind::kNear) continue;
        const bool aux = use.kind == Kind::kAux;
        const auto row = static_cast<size_t>(use.row) * stride;
        kernels_.add_scaled((aux ? aux_errors_.data() : errors_.data()) + row,
                            use.value * (aux ? aux_scale : scale), blocks, decoder);
        kernels_.add_scaled(x.row(use.row), use.gradient, blocks, encoder);
        bias_gradient[j] += use.gradient;
        if (!aux) activation_sums[j] += use.value;
      }
    }
    if (row_end == rows) break;
  }
  for (int f = first; f < last; ++f) {
    const int j = f - first;
    float* decoder = scratch.decoder_gradient.data() + static_cast<size_t>(j) * stride;
    const float* weights = decoder_row(f);
    const float norm = norms_[static_cast<size_t>(f)];
    if (penalised) {
      if (norm > 0) kernels_.add_scaled(weights, penalty * activation_sums[j] / norm, blocks, decoder);
    } else {
      kernels_.add_scaled(weights, -kernels_.dot(decoder, weights, blocks), blocks, decoder);
    }
    const auto at = static_cast<size_t>(f) * stride;
    decoder_.update(kernels_, at, decoder, 1.0F, nullptr, blocks, adam);
    measure_norm(f);
    const float length = norms_[static_cast<size_t>(f)];
    if (!penalised && length > 0) {
      float* row = decoder_.values.data() + at;
      const float inverse = 1.0F / length;
      for (int k = 0; k < padded_hidden_; ++k) row[k] *= inverse;
      norms_[static_cast<size_t>(f)] = 1.0F;
    }
  }
  for (int block = 0; block < blocks; ++block) {
    alignas(64) float piece[kWidth * kWidth];
    for (int j = 0; j < kWidth; ++j) {
      std::copy_n(scratch.encoder_gradient.data() + static_cast<size_t>(j) * stride + block * kWidth, kWidth,
                  piece + j * kWidth);
    }
    kernels_.transpose(piece, scratch.turned.data() + static_cast<std::ptrdiff_t>(block) * kWidth * kWidth);
  }
  encoder_.update(kernels_, static_cast<size_t>(panel) * size, scratch.turned.data(), 1.0F, nullptr,
                  padded_hidden_, adam);
  encoder_bias_.update(kernels_, static_cast<size_t>(first), bias_gradient, 1.0F, nullptr, 1, adam);
}

// kJumpRelu: the step at the threshold counts as a slope of 1 / bandwidth within half a bandwidth of it. The
// logarithm is trained, so that thresholds stay positive.
void SparseModel::update_thresholds(int panel, float penalty, const AdamStep& adam) {
  const int first = panel * kWidth;
  const int last = std::min(first + kWidth, shape_.features);
  alignas(64) float gradient[kWidth] = {};
  for (int f = first; f < last; ++f) {
    const float reach = threshold(f);
    float sum = 0;
    for (size_t i = use_starts_[static_cast<size_t>(f)]; i < use_starts_[static_cast<size_t>(f) + 1]; ++i) {
      const Use& use = uses_[i];
      if (use.kind == Kind::kAux || !(std::fabs(use.value - reach) < shape_.bandwidth / 2)) continue;
      sum -= (reach * use.gradient + penalty) / shape_.bandwidth;
    }
    gradient[f - first] = sum * reach;
  }
  log_threshold_.update(kernels_, static_cast<size_t>(first), gradient, 1.0F, nullptr, 1, adam);
  for (int f = first; f < last; ++f) measure_threshold(f);
}

}  // namespace tapline::dictionaries
