#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/cancel.h"
#include "base/thread_team.h"
#include "dictionaries/row_source.h"
#include "dictionaries/sparse_model.h"

namespace tapline::dictionaries {

/// All settings of a training; TypeScript fills in the defaults.
struct DictionaryOptions {
  SparseShape shape;
  int64_t steps = 0;
  int batch = 0;  ///< rows of a step
  uint64_t seed = 0;
  float learning_rate = 0;
  int64_t warmup = 0;  ///< steps over which the learning rate rises linearly from 0
  int64_t decay = 0;   ///< steps over which it falls to 0 at the end
  float sparsity = 0;
  int64_t sparsity_warmup = 0;
  float epsilon = 1e-8F;
  float initial_norm = 1;
  float initial_threshold = 0;
  int64_t dead_after = 0;  ///< steps
  int aux_k = 0;
  float aux_weight = 0;
  int64_t held_out = 0;        ///< the most rows of an evaluation, of either kind
  uint64_t measured = 65'536;  ///< the most training rows for mean and scale
  int threads = 0;             ///< 0: ThreadTeam::default_size()
};

/// Quality of the reconstruction of rows, or of the prediction of their targets, normalised as (x - mean) /
/// scale.
struct DictionaryEvaluation {
  int rows = 0;
  double mse = 0;  ///< per element
  /// Held-out rows: 1 - |y - y'|^2 / |y - their mean|^2, y being x itself or its target; NaN if they hardly
  /// differ.
  double explained_variance = 0;
  double active = 0;              ///< mean number of active features per row
  int dead = 0;                   ///< features that are active in no row
  std::vector<double> frequency;  ///< [features]: share of rows
  std::vector<double> mean;       ///< [features]: mean activation over all rows, for weights()
};

/// The dictionary on (x - mean) / scale; a transcoder's output is (y - mean) / scale of its targets. Decoder
/// rows of all architectures have length 1, so a feature's activation is the length that it adds.
struct DictionaryWeights {
  std::vector<float> encoder, encoder_bias;  ///< [features, hidden], [features]
  std::vector<float> decoder, decoder_bias;  ///< [features, hidden], [hidden]
  std::vector<float> thresholds;             ///< kBatchTopK and kJumpRelu: [features]
  std::vector<float> skip;                   ///< [hidden, hidden], by output; empty without a skip term
};

/// A row in which a feature is strongest.
struct StrongRow {
  RowPlace place;
  double activation = 0;  ///< for weights()
};

/// Affine normalisation of rows: (x - mean) / scale.
struct RowScale {
  std::vector<float> mean;
  float scale = 1;
};

/// Trains a sparse dictionary step by step, so that callers can inspect and save it between steps. Rows enter
/// as (x - mean) / scale: centred on the mean of a sample and scaled to a mean length of sqrt(hidden) there.
/// A transcoder's targets are normalised in the same way, by their own mean and scale.
class DictionaryTrainer {
 public:
  /// Throws kInvalidArgument and, for a row that is not finite, kCompute.
  DictionaryTrainer(std::unique_ptr<RowSource> rows, const DictionaryOptions& options,
                    const CancelToken& cancel);

  /// Sets random weights. The alternatives are restore() and start_from() of the model.
  void initialise() { model_.initialise(options_.seed, options_.initial_norm, options_.initial_threshold); }

  /// One step. Throws kCompute if a row is not finite.
  SparseFigures step();

  /// Runs the next `steps` steps, at most those that remain, and returns means over them. `progress(done,
  /// total)` counts all steps. Throws kCancelled between two steps, and kCompute if a row or the loss is not
  /// finite.
  SparseFigures run(int64_t steps, const CancelToken& cancel,
                    const std::function<void(double, double)>& progress);

  DictionaryEvaluation evaluate(const CancelToken& cancel);

  /// The same for training rows, without the explained variance: the first rows in shuffled order, up to the
  /// most for an evaluation.
  DictionaryEvaluation evaluate_training_rows(const CancelToken& cancel);

  /// `folded` moves the lengths of a kRelu model's decoder rows into the encoder.
  DictionaryWeights weights(bool folded = true) const;

  /// The held-out rows in which each of the features is strongest, at most `count` each.
  std::vector<std::vector<StrongRow>> strongest(const std::vector<int32_t>& features, size_t count,
                                                const CancelToken& cancel);

  int64_t steps_done() const { return model_.updates(); }
  const DictionaryOptions& options() const { return options_; }
  const RowSource& rows() const { return *rows_; }
  const std::vector<float>& mean() const { return input_.mean; }
  float scale() const { return input_.scale; }
  /// Of the targets; those of the rows unless this trains a transcoder.
  const RowScale& target_scale() const { return target_; }
  SparseModel& model() { return model_; }

 private:
  using Read = std::function<void(const RowPlace&, float*)>;
  Read reader(bool target) const;
  const RowBatch& targets() const { return options_.shape.transcodes ? y_ : x_; }
  RowScale measured(const Read& read, const CancelToken& cancel);
  void measure_held_out(const CancelToken& cancel);
  DictionaryEvaluation evaluate(const std::vector<RowPlace>& places, const CancelToken& cancel);
  void load(std::vector<RowPlace> places);
  double activation_of(const Fired& fired) const;  ///< for weights()
  /// Calls visit(first, count) for loaded rows, batch by batch.
  void over(const std::vector<RowPlace>& places, const CancelToken& cancel,
            const std::function<void(size_t, size_t)>& visit);

  DictionaryOptions options_;
  ThreadTeam team_;
  std::unique_ptr<RowSource> rows_;
  SparseModel model_;
  RowScale input_, target_;
  std::vector<RowPlace> held_out_;
  double held_out_variation_ = 0;  ///< of targets, |y - their mean|^2; NaN if they hardly differ
  std::vector<RowPlace> loaded_;   ///< the rows in x_ and y_
  RowBatch x_;
  RowBatch y_;  ///< of a transcoder
};

}  // namespace tapline::dictionaries
