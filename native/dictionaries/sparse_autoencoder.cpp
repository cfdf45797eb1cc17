#include "dictionaries/sparse_autoencoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "dictionaries/dictionary_trainer.h"
#include "numbers/random.h"

namespace tapline::dictionaries {

namespace {

constexpr uint64_t kInitialWeightsStream = 2;
constexpr size_t kReportedFeatures = 16;
constexpr size_t kReportedExamples = 8;

/// Examples in memory, in their order.
class ExampleRows final : public RowSource {
 public:
  explicit ExampleRows(const Examples& examples) : examples_(examples) {
    for (uint64_t i = 0; i < static_cast<uint64_t>(examples.count); ++i)
      (examples.train[i] != 0 ? train_ : held_out_).push_back({0, i});
  }
  int hidden() const override { return examples_.hidden; }
  uint64_t train_rows() const override { return train_.size(); }
  uint64_t held_out_rows() const override { return held_out_.size(); }
  std::vector<RowPlace> train(uint64_t from, size_t count) override {
    std::vector<RowPlace> found;
    for (size_t i = 0; i < count; ++i) found.push_back(train_[(from + i) % train_.size()]);
    return found;
  }
  std::vector<RowPlace> held_out(size_t count) const override {
    return {held_out_.begin(),
            held_out_.begin() + static_cast<std::ptrdiff_t>(std::min(count, held_out_.size()))};
  }
  void read(const RowPlace& place, float* to) const override {
    const auto hidden = static_cast<size_t>(examples_.hidden);
    std::copy_n(examples_.features + place.row * hidden, hidden, to);
  }
  std::string name_of(const RowPlace& place) const override { return "example " + std::to_string(place.row); }

 private:
  const Examples& examples_;
  std::vector<RowPlace> train_, held_out_;
};

/// A matrix [rows, columns] as [columns, rows].
std::vector<float> transposed(const std::vector<float>& matrix, size_t rows, size_t columns) {
  std::vector<float> out(matrix.size());
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) out[j * rows + i] = matrix[i * columns + j];
  return out;
}

/// The active features with the highest mean activation, and the examples in which each is strongest.
std::vector<SaeFeature> strongest_features(DictionaryTrainer& trainer, const DictionaryEvaluation& held_out,
                                           const CancelToken& cancel) {
  std::vector<int32_t> active;
  for (size_t f = 0; f < held_out.mean.size(); ++f)
    if (held_out.frequency[f] > 0) active.push_back(static_cast<int32_t>(f));
  const auto mean_of = [&](int32_t feature) { return held_out.mean[static_cast<size_t>(feature)]; };
  std::stable_sort(active.begin(), active.end(),
                   [&](int32_t a, int32_t b) { return mean_of(a) > mean_of(b); });
  if (active.size() > kReportedFeatures) active.resize(kReportedFeatures);
  const auto rows = trainer.strongest(active, kReportedExamples, cancel);
  std::vector<SaeFeature> out;
  for (size_t i = 0; i < active.size(); ++i) {
    SaeFeature feature{active[i], mean_of(active[i]), held_out.frequency[static_cast<size_t>(active[i])], {}};
    for (const StrongRow& row : rows[i])
      feature.examples.emplace_back(static_cast<int>(row.place.row), row.activation);
    out.push_back(std::move(feature));
  }
  return out;
}

int64_t share_of(double share, int steps) {
  return std::lround(share * steps);
}

}  // namespace

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
  auto rows = std::make_unique<ExampleRows>(examples);
  if (rows->train_rows() == 0 || rows->held_out_rows() == 0)
    throw_error(ErrorCode::kInvalidArgument,
                "A sparse autoencoder needs training and held-out examples, got ", rows->train_rows(),
                " and ", rows->held_out_rows(), ".");
  SaeResult result;
  result.train_size = static_cast<int>(rows->train_rows());
  result.test_size = static_cast<int>(rows->held_out_rows());

  const float root = std::sqrt(static_cast<float>(examples.hidden));
  const float l1 = options.l1.value_or(0.11f * root);
  DictionaryOptions training;
  training.shape.architecture = Architecture::kRelu;
  training.shape.hidden = examples.hidden;
  training.shape.features = options.features;
  training.steps = options.steps;
  training.batch = result.train_size;
  training.learning_rate = options.learning_rate.value_or(0.06f / root);
  training.decay = share_of(options.learning_rate_decay, options.steps);
  training.sparsity = l1;
  training.sparsity_warmup = share_of(options.l1_warmup, options.steps);
  training.epsilon = options.epsilon;
  training.dead_after = options.steps;
  training.held_out = examples.count;
  training.measured = rows->train_rows();
  training.threads = options.threads;
  DictionaryTrainer trainer(std::move(rows), training, cancel);

  const auto hidden = static_cast<size_t>(examples.hidden);
  const auto features = static_cast<size_t>(options.features);
  const SaeWeights init = options.init ? *options.init : initial_sae_weights(examples.hidden, options);
  trainer.model().start_from(init.encoder_weight, init.encoder_bias,
                             transposed(init.decoder_weight, hidden, features), init.decoder_bias);
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < options.steps; ++step) {
    cancel.check();
    const SparseFigures figures = trainer.step();
    const double loss = figures.square_error + static_cast<double>(l1) * figures.penalty;
    if (!std::isfinite(loss))
      throw_error(ErrorCode::kCompute, "Training of the sparse autoencoder diverged at step ", step,
                  ": the loss is not finite.");
    if (step % options.loss_every == 0) result.losses.emplace_back(step, loss);
    if (progress) progress(step + 1.0, options.steps);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const DictionaryEvaluation trained = trainer.evaluate_training_rows(cancel);
  result.train_mse = trained.mse;
  const double penalty = std::accumulate(trained.mean.begin(), trained.mean.end(), 0.0) / examples.hidden;
  result.losses.emplace_back(options.steps, trained.mse + static_cast<double>(l1) * penalty);

  const DictionaryEvaluation held_out = trainer.evaluate(cancel);
  result.held_out_mse = held_out.mse;
  result.explained_variance = held_out.explained_variance;
  result.mean_active = held_out.active;
  result.dead_features = held_out.dead;
  result.features = strongest_features(trainer, held_out, cancel);

  DictionaryWeights weights = trainer.weights(options.fold_decoder_norms);
  result.mean = trainer.mean();
  result.scale = trainer.scale();
  result.weights = {std::move(weights.encoder), std::move(weights.encoder_bias),
                    transposed(weights.decoder, features, hidden), std::move(weights.decoder_bias)};
  return result;
}

}  // namespace tapline::dictionaries
