#include "dictionaries/sparse_autoencoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "base/thread_team.h"
#include "dictionaries/sae_model.h"
#include "numbers/random.h"

namespace tapline::dictionaries {

namespace {

constexpr uint64_t kInitialWeightsStream = 2;
constexpr size_t kReportedFeatures = 16;
constexpr size_t kReportedExamples = 8;

/// Of the sum of squares: rows farther from their mean than 1e-5 of their length are different rows.
constexpr double kLeastVariation = 1e-10;

const float* row_of(const Examples& examples, int row) {
  return examples.features + static_cast<size_t>(row) * static_cast<size_t>(examples.hidden);
}

// Centred on the training mean and scaled so that the mean norm is sqrt(hidden).
void normalisation(const Examples& examples, const std::vector<int>& rows, SaeResult& result) {
  const size_t hidden = static_cast<size_t>(examples.hidden);
  std::vector<double> mean(hidden, 0.0);
  for (const int row : rows) {
    const float* x = row_of(examples, row);
    for (size_t k = 0; k < hidden; ++k) mean[k] += x[k];
  }
  result.mean.resize(hidden);
  for (size_t k = 0; k < hidden; ++k)
    result.mean[k] = static_cast<float>(mean[k] / static_cast<double>(rows.size()));
  double norm_sum = 0;
  for (const int row : rows) {
    const float* x = row_of(examples, row);
    double square = 0;
    for (size_t k = 0; k < hidden; ++k) {
      const double centred = static_cast<double>(x[k]) - static_cast<double>(result.mean[k]);
      square += centred * centred;
    }
    norm_sum += std::sqrt(square);
  }
  const double scale = norm_sum / static_cast<double>(rows.size()) / std::sqrt(static_cast<double>(hidden));
  // Activations that are all alike (or differ by rounding only) have no scale.
  result.scale = scale > 1e-30 && std::isfinite(scale) ? static_cast<float>(scale) : 1.0f;
}

void load(const Examples& examples, const std::vector<int>& rows, const SaeResult& normalised,
          FloatPanels& x) {
  const float inverse = 1.0f / normalised.scale;
  for (size_t i = 0; i < rows.size(); ++i) {
    const float* from = row_of(examples, rows[i]);
    for (int k = 0; k < examples.hidden; ++k) {
      x.at(static_cast<int>(i), k) = (from[k] - normalised.mean[static_cast<size_t>(k)]) * inverse;
    }
  }
}

// Sum of squared distances from the mean row.
double total_variation(const FloatPanels& x, int hidden) {
  double total = 0;
  for (int k = 0; k < hidden; ++k) {
    double sum = 0;
    for (int i = 0; i < x.rows(); ++i) sum += x.at(i, k);
    const double mean = sum / x.rows();
    for (int i = 0; i < x.rows(); ++i) total += (x.at(i, k) - mean) * (x.at(i, k) - mean);
  }
  return total;
}

// The sum of squares of activations as they came, in units of the normalised ones.
double size_of(const Examples& examples, const std::vector<int>& rows, const SaeResult& normalised) {
  double square = 0;
  for (const int row : rows) {
    const float* x = row_of(examples, row);
    for (int k = 0; k < examples.hidden; ++k) {
      const double value = static_cast<double>(x[k]) / static_cast<double>(normalised.scale);
      square += value * value;
    }
  }
  return square;
}

// relu(w x + b) |d| = relu(|d| w x + |d| b): the same autoencoder with unit decoder columns.
void fold_norms(SaeWeights& weights, int hidden, int features) {
  for (int f = 0; f < features; ++f) {
    double square = 0;
    for (int k = 0; k < hidden; ++k) {
      const double value = weights.decoder_weight[static_cast<size_t>(k) * static_cast<size_t>(features) +
                                                  static_cast<size_t>(f)];
      square += value * value;
    }
    if (!(square > 0)) continue;
    const float norm = static_cast<float>(std::sqrt(square));
    float* row = weights.encoder_weight.data() + static_cast<size_t>(f) * static_cast<size_t>(hidden);
    for (int k = 0; k < hidden; ++k) {
      row[k] *= norm;
      weights
          .decoder_weight[static_cast<size_t>(k) * static_cast<size_t>(features) + static_cast<size_t>(f)] /=
          norm;
    }
    weights.encoder_bias[static_cast<size_t>(f)] *= norm;
  }
}

// Fills what the report says about features. Activations count in units of the reconstruction: times the norm
// of the decoder column, whether or not the weights are returned folded.
void describe_features(const SaeBatch& batch, const std::vector<float>& norms, int features,
                       const std::vector<int>& rows, SaeResult& result) {
  const int count = batch.x.rows();
  std::vector<SaeFeature> all;
  double active = 0;
  for (int f = 0; f < features; ++f) {
    SaeFeature feature;
    feature.feature = f;
    for (int i = 0; i < count; ++i) {
      const double activation =
          static_cast<double>(batch.activations.at(i, f)) * norms[static_cast<size_t>(f)];
      if (!(activation > 0)) continue;
      feature.mean += activation / count;
      feature.frequency += 1;
      feature.examples.emplace_back(rows[static_cast<size_t>(i)], activation);
    }
    active += feature.frequency;
    if (feature.examples.empty()) {
      ++result.dead_features;
      continue;
    }
    feature.frequency /= count;
    std::stable_sort(feature.examples.begin(), feature.examples.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (feature.examples.size() > kReportedExamples) feature.examples.resize(kReportedExamples);
    all.push_back(std::move(feature));
  }
  result.mean_active = active / count;
  std::stable_sort(all.begin(), all.end(),
                   [](const SaeFeature& a, const SaeFeature& b) { return a.mean > b.mean; });
  if (all.size() > kReportedFeatures) all.resize(kReportedFeatures);
  result.features = std::move(all);
}

int share_of(double share, int steps) {
  return static_cast<int>(std::lround(share * steps));
}

}  // namespace

float default_sae_l1(int hidden) {
  return 0.11f * std::sqrt(static_cast<float>(hidden));
}

float default_sae_learning_rate(int hidden) {
  return 0.06f / std::sqrt(static_cast<float>(hidden));
}

SaeWeights initial_sae_weights(int hidden, const SaeOptions& options) {
  const size_t d = static_cast<size_t>(hidden);
  const size_t n = static_cast<size_t>(options.features);
  SaeWeights weights;
  weights.encoder_weight.resize(n * d);
  weights.decoder_weight.resize(n * d);
  weights.encoder_bias.assign(n, 0.0f);
  weights.decoder_bias.assign(d, 0.0f);
  Random random(options.seed, kInitialWeightsStream);
  std::vector<double> direction(d);
  for (size_t f = 0; f < n; ++f) {
    double square = 0;
    for (double& value : direction) {
      value = random.normal();
      square += value * value;
    }
    const double factor = options.initial_decoder_norm / std::sqrt(std::max(square, 1e-300));
    for (size_t k = 0; k < d; ++k) {
      const float value = static_cast<float>(direction[k] * factor);
      weights.encoder_weight[f * d + k] = value;
      weights.decoder_weight[k * n + f] = value;
    }
  }
  return weights;
}

SaeResult train_sae(const Examples& examples, const SaeOptions& options, const CancelToken& cancel,
                    const std::function<void(double, double)>& progress) {
  check_finite(examples);
  std::vector<int> train;
  std::vector<int> test;
  for (int i = 0; i < examples.count; ++i)
    (examples.train[static_cast<size_t>(i)] ? train : test).push_back(i);
  if (train.empty() || test.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "A sparse autoencoder needs training and held-out examples, but has " +
                    std::to_string(train.size()) + " and " + std::to_string(test.size()) + ".");
  }
  SaeResult result;
  result.train_size = static_cast<int>(train.size());
  result.test_size = static_cast<int>(test.size());
  normalisation(examples, train, result);

  ThreadTeam team(options.threads > 0 ? options.threads : ThreadTeam::default_size());
  SaeModel model(examples.hidden, options.features,
                 options.init ? *options.init : initial_sae_weights(examples.hidden, options), team);
  SaeBatch batch(result.train_size, examples.hidden, options.features);
  load(examples, train, result, batch.x);

  const float l1 = options.l1.value_or(default_sae_l1(examples.hidden));
  const float learning_rate = options.learning_rate.value_or(default_sae_learning_rate(examples.hidden));
  const auto start = std::chrono::steady_clock::now();
  const int warmup = share_of(options.l1_warmup, options.steps);
  const int decay = share_of(options.learning_rate_decay, options.steps);
  for (int step = 0; step < options.steps; ++step) {
    cancel.check();
    const double l1_share = warmup > 0 ? std::min(1.0, (step + 1.0) / warmup) : 1.0;
    const double rate_share =
        decay > 0 ? std::min(1.0, static_cast<double>(options.steps - step) / decay) : 1.0;
    const double loss = model.train(batch, step + 1, static_cast<float>(learning_rate * rate_share),
                                    options.epsilon, static_cast<float>(l1 * l1_share), l1);
    if (!std::isfinite(loss)) {
      throw Error(ErrorCode::kCompute, "Training of the sparse autoencoder diverged at step " +
                                           std::to_string(step) + ": the loss is not finite.");
    }
    if (step % options.loss_every == 0) result.losses.emplace_back(step, loss);
    if (progress) progress(step + 1.0, options.steps);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  model.forward(batch);
  const double hidden = examples.hidden;
  result.train_mse = batch.square_error() / (result.train_size * hidden);
  result.losses.emplace_back(options.steps, model.loss(batch, l1));

  SaeBatch held_out(result.test_size, examples.hidden, options.features);
  load(examples, test, result, held_out.x);
  model.forward(held_out);
  result.held_out_mse = held_out.square_error() / (result.test_size * hidden);
  const double variation = total_variation(held_out.x, examples.hidden);
  // Rows that differ in their last digits only have no variance to explain: a share of it would be any
  // number.
  const bool varies = variation > kLeastVariation * size_of(examples, test, result);
  result.explained_variance =
      varies ? 1.0 - held_out.square_error() / variation : std::numeric_limits<double>::quiet_NaN();
  describe_features(held_out, model.decoder_norms(), options.features, test, result);

  result.weights = model.weights();
  if (options.fold_decoder_norms) fold_norms(result.weights, examples.hidden, options.features);
  return result;
}

}  // namespace tapline::dictionaries
