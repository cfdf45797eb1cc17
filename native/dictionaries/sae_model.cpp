#include "dictionaries/sae_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tapline::dictionaries {

namespace {

constexpr int kWidth = FloatPanels::kWidth;
constexpr int kRowsPerTask = 96;     // rows that share a slice of weights while it is in the cache
constexpr int kBlocksPerSlice = 16;  // 16 * 32 deep: slices of weights of 64 KiB

// out[from ... to) = a * b over rows [from, to), all panels of b; b is [a's columns, out's columns].
void product(const Kernels& kernels, const FloatPanels& a, const FloatPanels& b, FloatPanels& out, int panel,
             int from, int to) {
  for (int block = 0; block < a.panels(); block += kBlocksPerSlice) {
    const int blocks = std::min(kBlocksPerSlice, a.panels() - block);
    kernels.rows_times_panel(a.panel(block, from), a.stride(), b.panel(panel, block * kWidth), blocks,
                             to - from, out.panel(panel, from), block > 0);
  }
}

}  // namespace

double SaeBatch::square_error() const {
  double sum = 0;
  for (const float value : square_errors) sum += value;
  return sum;
}

SaeModel::SaeModel(int hidden, int features, const SaeWeights& weights, ThreadTeam& team)
    : team_(team),
      hidden_(hidden),
      features_(features),
      encoder_(round_up(features, kWidth), hidden),
      decoder_(round_up(features, kWidth), hidden),
      encoder_transposed_(round_up(hidden, kWidth), features),
      decoder_transposed_(round_up(hidden, kWidth), features) {
  const int padded_features = encoder_.rows();
  const int padded_hidden = encoder_transposed_.rows();
  for (Moments* moments : {&encoder_moments_, &decoder_moments_}) {
    moments->m = FloatPanels(padded_features, hidden);
    moments->v = FloatPanels(padded_features, hidden);
  }
  for (AlignedArray<float>* array : {&encoder_bias_, &encoder_bias_m_, &encoder_bias_v_}) {
    *array = AlignedArray<float>(static_cast<size_t>(padded_features));
  }
  for (AlignedArray<float>* array : {&decoder_bias_, &decoder_bias_m_, &decoder_bias_v_}) {
    *array = AlignedArray<float>(static_cast<size_t>(padded_hidden));
  }
  for (std::vector<float>* list : {&norms_, &penalties_, &shrink_, &activation_sums_, &bias_gradients_}) {
    list->assign(static_cast<size_t>(padded_features), 0.0f);
  }
  square_sums_.assign(static_cast<size_t>(decoder_.panels()) * static_cast<size_t>(padded_features), 0.0f);

  for (int f = 0; f < features; ++f) {
    for (int k = 0; k < hidden; ++k) {
      encoder_.at(f, k) =
          weights
              .encoder_weight[static_cast<size_t>(f) * static_cast<size_t>(hidden) + static_cast<size_t>(k)];
      decoder_.at(f, k) = weights.decoder_weight[static_cast<size_t>(k) * static_cast<size_t>(features) +
                                                 static_cast<size_t>(f)];
    }
  }
  std::copy(weights.encoder_bias.begin(), weights.encoder_bias.end(), encoder_bias_.data());
  std::copy(weights.decoder_bias.begin(), weights.decoder_bias.end(), decoder_bias_.data());
  team_.parallel_for(encoder_.panels(), [&](int strip) {
    store_transposed(encoder_, strip, encoder_transposed_);
    store_transposed(decoder_, strip, decoder_transposed_);
    kernels_.row_square_sums(decoder_.panel(strip), padded_features,
                             square_sums_.data() + strip * padded_features);
  });
  measure_norms();
}

SaeWeights SaeModel::weights() const {
  SaeWeights out;
  const size_t hidden = static_cast<size_t>(hidden_);
  const size_t features = static_cast<size_t>(features_);
  out.encoder_weight.resize(features * hidden);
  out.decoder_weight.resize(features * hidden);
  for (int f = 0; f < features_; ++f) {
    for (int k = 0; k < hidden_; ++k) {
      out.encoder_weight[static_cast<size_t>(f) * hidden + static_cast<size_t>(k)] = encoder_.at(f, k);
      out.decoder_weight[static_cast<size_t>(k) * features + static_cast<size_t>(f)] = decoder_.at(f, k);
    }
  }
  out.encoder_bias.assign(encoder_bias_.data(), encoder_bias_.data() + features_);
  out.decoder_bias.assign(decoder_bias_.data(), decoder_bias_.data() + hidden_);
  return out;
}

void SaeModel::over_rows(int rows, const std::function<void(int, int)>& body) {
  // At least two tasks a thread where there are enough rows. Sums over examples are formed elsewhere, in one
  // order, so the division into tasks does not show in the results.
  const int wanted = round_up(std::max(1, rows / (2 * team_.size())), 12);
  const int step = std::min(kRowsPerTask, wanted);
  const int tasks = (rows + step - 1) / step;
  team_.parallel_for(tasks, [&](int task) { body(task * step, std::min(rows, (task + 1) * step)); });
}

void SaeModel::forward_rows(SaeBatch& batch, int from, int to) {
  const int rows = to - from;
  for (int panel = 0; panel < batch.activations.panels(); ++panel) {
    product(kernels_, batch.x, encoder_transposed_, batch.activations, panel, from, to);
    kernels_.bias_relu(batch.activations.panel(panel, from), encoder_bias_.data() + panel * kWidth, rows);
  }
  alignas(64) float square_errors[kRowsPerTask * kWidth / 2];
  std::fill_n(square_errors, rows * kWidth / 2, 0.0f);
  for (int panel = 0; panel < batch.errors.panels(); ++panel) {
    product(kernels_, batch.activations, decoder_, batch.errors, panel, from, to);
    kernels_.residual(batch.errors.panel(panel, from), decoder_bias_.data() + panel * kWidth,
                      batch.x.panel(panel, from), rows, square_errors);
  }
  for (int i = 0; i < rows; ++i) {
    const float* parts = square_errors + i * kWidth / 2;
    batch.square_errors[static_cast<size_t>(from + i)] = std::accumulate(parts, parts + kWidth / 2, 0.0f);
  }
}

void SaeModel::backward_rows(SaeBatch& batch, int from, int to, float scale) {
  for (int panel = 0; panel < batch.activations.panels(); ++panel) {
    product(kernels_, batch.errors, decoder_transposed_, activation_gradients_, panel, from, to);
    kernels_.relu_backward(activation_gradients_.panel(panel, from), batch.activations.panel(panel, from),
                           penalties_.data() + panel * kWidth, scale, to - from);
  }
}

void SaeModel::forward(SaeBatch& batch) {
  over_rows(batch.x.rows(), [&](int from, int to) { forward_rows(batch, from, to); });
}

double SaeModel::loss(const SaeBatch& batch, float l1) const {
  double penalty = 0;
  for (int f = 0; f < features_; ++f) {
    double sum = 0;
    for (int i = 0; i < batch.x.rows(); ++i) sum += batch.activations.at(i, f);
    penalty += sum * norms_[static_cast<size_t>(f)];
  }
  return (batch.square_error() + l1 * penalty) / (static_cast<double>(batch.x.rows()) * hidden_);
}

double SaeModel::train(SaeBatch& batch, int update, float learning_rate, float epsilon, float l1,
                       float reported_l1) {
  const int rows = batch.x.rows();
  if (activation_gradients_.rows() != rows) activation_gradients_ = FloatPanels(rows, features_);
  const double elements = static_cast<double>(rows) * hidden_;
  const float scale = static_cast<float>(2.0 / elements);
  const float weighted_l1 = static_cast<float>(l1 / elements);
  for (size_t f = 0; f < norms_.size(); ++f) penalties_[f] = weighted_l1 * norms_[f];

  over_rows(rows, [&](int from, int to) {
    forward_rows(batch, from, to);
    backward_rows(batch, from, to, scale);
  });

  team_.parallel_for(batch.activations.panels(), [&](int panel) {
    kernels_.column_sums(batch.activations.panel(panel), rows, activation_sums_.data() + panel * kWidth);
    kernels_.column_sums(activation_gradients_.panel(panel), rows, bias_gradients_.data() + panel * kWidth);
  });
  double penalty = 0;
  for (size_t f = 0; f < norms_.size(); ++f) {
    penalty += static_cast<double>(activation_sums_[f]) * norms_[f];
    shrink_[f] = norms_[f] > 0 ? weighted_l1 * activation_sums_[f] / norms_[f] : 0.0f;
  }
  const double loss = (batch.square_error() + reported_l1 * penalty) / elements;

  AdamStep step;
  step.epsilon = epsilon;
  step.rate = static_cast<float>(learning_rate / (1.0 - std::pow(static_cast<double>(step.beta1), update)));
  step.inverse_sqrt_bias2 =
      static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(step.beta2), update)));
  team_.parallel_for(encoder_.panels(), [&](int strip) { update_strip(batch, strip, scale, step); });
  kernels_.adam(encoder_bias_.data(), encoder_bias_m_.data(), encoder_bias_v_.data(), bias_gradients_.data(),
                1.0f, nullptr, encoder_.rows() / kWidth, step);
  measure_norms();
  return loss;
}

// Gradients and updates of everything that belongs to 32 hidden dimensions.
void SaeModel::update_strip(const SaeBatch& batch, int strip, float scale, const AdamStep& step) {
  const int rows = batch.x.rows();
  alignas(64) float gradient[kWidth * kWidth];
  for (int panel = 0; panel < batch.activations.panels(); ++panel) {
    const int feature = panel * kWidth;
    kernels_.of_floats.product(batch.activations.panel(panel), batch.errors.panel(strip), rows, gradient,
                               false);
    kernels_.adam(decoder_.panel(strip, feature), decoder_moments_.m.panel(strip, feature),
                  decoder_moments_.v.panel(strip, feature), gradient, scale, shrink_.data() + feature, kWidth,
                  step);
  }
  for (int panel = 0; panel < batch.activations.panels(); ++panel) {
    const int feature = panel * kWidth;
    kernels_.of_floats.product(activation_gradients_.panel(panel), batch.x.panel(strip), rows, gradient,
                               false);
    kernels_.adam(encoder_.panel(strip, feature), encoder_moments_.m.panel(strip, feature),
                  encoder_moments_.v.panel(strip, feature), gradient, 1.0f, nullptr, kWidth, step);
  }
  store_transposed(encoder_, strip, encoder_transposed_);
  store_transposed(decoder_, strip, decoder_transposed_);
  kernels_.row_square_sums(decoder_.panel(strip), decoder_.rows(),
                           square_sums_.data() + strip * decoder_.rows());

  kernels_.column_sums(batch.errors.panel(strip), rows, gradient);
  const int dimension = strip * kWidth;
  kernels_.adam(decoder_bias_.data() + dimension, decoder_bias_m_.data() + dimension,
                decoder_bias_v_.data() + dimension, gradient, scale, nullptr, 1, step);
}

void SaeModel::store_transposed(const FloatPanels& weights, int strip, FloatPanels& out) {
  for (int panel = 0; panel < out.panels(); ++panel) {
    kernels_.transpose(weights.panel(strip, panel * kWidth), out.panel(panel, strip * kWidth));
  }
}

void SaeModel::measure_norms() {
  std::fill(norms_.begin(), norms_.end(), 0.0f);
  for (int strip = 0; strip < decoder_.panels(); ++strip) {
    const float* sums = square_sums_.data() + static_cast<size_t>(strip) * norms_.size();
    for (size_t f = 0; f < norms_.size(); ++f) norms_[f] += sums[f];
  }
  for (float& norm : norms_) norm = std::sqrt(norm);
}

}  // namespace tapline::dictionaries
