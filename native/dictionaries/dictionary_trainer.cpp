#include "dictionaries/dictionary_trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"

namespace tapline::dictionaries {

namespace {

/// Rows per task; sums over tasks are computed in their order.
constexpr size_t kTaskRows = 256;
/// Relative to the sum of squares: rows that differ by more than 1e-5 of their length count as different.
constexpr double kLeastVariation = 1e-10;

}  // namespace

DictionaryTrainer::DictionaryTrainer(std::unique_ptr<RowSource> rows, const DictionaryOptions& options,
                                     const CancelToken& cancel)
    : options_(options),
      team_(options.threads > 0 ? options.threads : ThreadTeam::default_size()),
      rows_(std::move(rows)),
      model_(options.shape, team_),
      x_(options.batch, options.shape.hidden) {
  if (options.shape.transcodes) y_ = RowBatch(options.batch, options.shape.hidden);
  input_ = measured(reader(false), cancel);
  target_ = options.shape.transcodes ? measured(reader(true), cancel) : input_;
  held_out_ = rows_->held_out(static_cast<size_t>(options.held_out));
  measure_held_out(cancel);
}

DictionaryTrainer::Read DictionaryTrainer::reader(bool target) const {
  return [this, target](const RowPlace& place, float* to) {
    if (target) {
      rows_->read_target(place, to);
    } else {
      rows_->read(place, to);
    }
  };
}

// Sums over rows, task by task, in a fixed order.
namespace {

struct RowSums {
  std::vector<double> values;
  double square = 0;
  double length = 0;
};

RowSums sum_rows(const std::function<void(const RowPlace&, float*)>& read,
                 const std::vector<RowPlace>& places, const std::vector<float>& centre, ThreadTeam& team,
                 const CancelToken& cancel) {
  const size_t hidden = centre.size();
  const size_t tasks = (places.size() + kTaskRows - 1) / kTaskRows;
  std::vector<RowSums> parts(tasks);
  team.parallel_for(static_cast<int>(tasks), [&](int task) {
    if (cancel.cancelled()) return;
    RowSums& part = parts[static_cast<size_t>(task)];
    part.values.assign(hidden, 0.0);
    std::vector<float> row(hidden);
    const size_t from = static_cast<size_t>(task) * kTaskRows;
    for (size_t i = from; i < std::min(places.size(), from + kTaskRows); ++i) {
      read(places[i], row.data());
      double square = 0;
      for (size_t k = 0; k < hidden; ++k) {
        const double value = static_cast<double>(row[k]) - static_cast<double>(centre[k]);
        part.values[k] += value;
        square += value * value;
      }
      part.square += square;
      part.length += std::sqrt(square);
    }
  });
  cancel.check();
  RowSums all;
  all.values.assign(hidden, 0.0);
  for (const RowSums& part : parts) {
    for (size_t k = 0; k < hidden; ++k) all.values[k] += part.values[k];
    all.square += part.square;
    all.length += part.length;
  }
  return all;
}

}  // namespace

RowScale DictionaryTrainer::measured(const Read& read, const CancelToken& cancel) {
  const auto hidden = static_cast<size_t>(rows_->hidden());
  const auto count = static_cast<size_t>(std::min(options_.measured, rows_->train_rows()));
  const std::vector<RowPlace> places = rows_->train(0, count);
  RowScale found{std::vector<float>(hidden, 0.0F), 1.0F};
  const RowSums sums = sum_rows(read, places, found.mean, team_, cancel);
  for (size_t k = 0; k < hidden; ++k)
    found.mean[k] = static_cast<float>(sums.values[k] / static_cast<double>(count));
  const RowSums centred = sum_rows(read, places, found.mean, team_, cancel);
  const double scale = centred.length / static_cast<double>(count) / std::sqrt(static_cast<double>(hidden));
  // Equal rows have no scale. A row that is not finite is reported when it is loaded.
  if (scale > 1e-30 && std::isfinite(scale)) found.scale = static_cast<float>(scale);
  return found;
}

void DictionaryTrainer::measure_held_out(const CancelToken& cancel) {
  const auto hidden = static_cast<size_t>(rows_->hidden());
  const auto count = static_cast<double>(held_out_.size());
  std::vector<float> centre(hidden, 0.0F);
  const Read read = reader(options_.shape.transcodes);
  const RowSums sums = sum_rows(read, held_out_, centre, team_, cancel);
  for (size_t k = 0; k < hidden; ++k) centre[k] = static_cast<float>(sums.values[k] / count);
  const double square = sum_rows(read, held_out_, centre, team_, cancel).square;
  const double scale = static_cast<double>(target_.scale) * static_cast<double>(target_.scale);
  // If rows differ only in their last digits, there is no variance to explain.
  held_out_variation_ =
      square > kLeastVariation * sums.square ? square / scale : std::numeric_limits<double>::quiet_NaN();
}

// Reads rows into x_ and their targets into y_, unless they are there already, as with a source of a single
// batch.
void DictionaryTrainer::load(std::vector<RowPlace> places) {
  if (places == loaded_) return;
  const int hidden = rows_->hidden();
  const Kernels& kernels = best_kernels();
  std::atomic<size_t> bad{places.size()};
  constexpr size_t kRows = 16;
  const auto place = [&](size_t i, const Read& read, const RowScale& by, RowBatch& to) {
    const float inverse = 1.0F / by.scale;
    float* row = to.row(static_cast<int>(i));
    read(places[i], row);
    if (!kernels.all_finite(row, hidden)) {
      size_t known = bad.load();
      while (i < known && !bad.compare_exchange_weak(known, i)) {
      }
    }
    for (int k = 0; k < hidden; ++k) row[k] = (row[k] - by.mean[static_cast<size_t>(k)]) * inverse;
    to.pack(static_cast<int>(i));
  };
  const Read read_input = reader(false);
  const Read read_target = reader(true);
  team_.parallel_for(static_cast<int>((places.size() + kRows - 1) / kRows), [&](int task) {
    const size_t first = static_cast<size_t>(task) * kRows;
    for (size_t i = first; i < std::min(places.size(), first + kRows); ++i) {
      place(i, read_input, input_, x_);
      if (options_.shape.transcodes) place(i, read_target, target_, y_);
    }
  });
  loaded_.clear();
  if (bad < places.size())
    throw_error(ErrorCode::kCompute, "A number in ", rows_->name_of(places[bad]), " is not finite.");
  loaded_ = std::move(places);
}

SparseFigures DictionaryTrainer::step() {
  const auto share = [](int64_t done, int64_t of) {
    return of > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(of)) : 1.0;
  };
  const int64_t step = model_.updates();
  const auto batch = static_cast<size_t>(options_.batch);
  load(rows_->train(static_cast<uint64_t>(step) * batch, batch));
  SparseStep one;
  one.learning_rate =
      static_cast<float>(options_.learning_rate * std::min(share(step + 1, options_.warmup),
                                                           share(options_.steps - step, options_.decay)));
  one.epsilon = options_.epsilon;
  one.sparsity = static_cast<float>(options_.sparsity * share(step + 1, options_.sparsity_warmup));
  one.dead_after = options_.dead_after;
  one.aux_k = options_.aux_k;
  one.aux_weight = options_.aux_weight;
  return model_.train(x_, targets(), options_.batch, one);
}

SparseFigures DictionaryTrainer::run(int64_t steps, const CancelToken& cancel,
                                     const std::function<void(double, double)>& progress) {
  SparseFigures sums;
  int64_t done = 0;
  for (; done < steps && model_.updates() < options_.steps; ++done) {
    cancel.check();
    const SparseFigures figures = step();
    if (!std::isfinite(figures.square_error))
      throw_error(ErrorCode::kCompute, "Training of the dictionary diverged at step ", model_.updates() - 1,
                  ": its error is not finite.");
    sums.square_error += figures.square_error;
    sums.active += figures.active;
    sums.dead = figures.dead;
    if (progress) progress(static_cast<double>(model_.updates()), static_cast<double>(options_.steps));
  }
  if (done > 0) {
    sums.square_error /= static_cast<double>(done);
    sums.active /= static_cast<double>(done);
  }
  return sums;
}

void DictionaryTrainer::over(const std::vector<RowPlace>& places, const CancelToken& cancel,
                             const std::function<void(size_t, size_t)>& visit) {
  const auto batch = static_cast<size_t>(options_.batch);
  for (size_t first = 0; first < places.size(); first += batch) {
    cancel.check();
    const size_t last = std::min(places.size(), first + batch);
    load({places.begin() + static_cast<std::ptrdiff_t>(first),
          places.begin() + static_cast<std::ptrdiff_t>(last)});
    visit(first, last - first);
  }
}

DictionaryEvaluation DictionaryTrainer::evaluate(const std::vector<RowPlace>& places,
                                                 const CancelToken& cancel) {
  const auto features = static_cast<size_t>(options_.shape.features);
  DictionaryEvaluation found;
  found.rows = static_cast<int>(places.size());
  std::vector<double> sums(features, 0.0);
  std::vector<int64_t> counts(features, 0);
  double square = 0;
  double active = 0;
  std::vector<std::vector<Fired>> fired;
  std::vector<float> errors;
  over(places, cancel, [&](size_t, size_t count) {
    model_.encode(x_, targets(), static_cast<int>(count), fired, errors);
    for (size_t i = 0; i < count; ++i) {
      square += errors[i];
      active += static_cast<double>(fired[i].size());
      for (const Fired& one : fired[i]) {
        sums[static_cast<size_t>(one.feature)] += activation_of(one);
        ++counts[static_cast<size_t>(one.feature)];
      }
    }
  });
  const double rows = found.rows;
  found.mse = square / (rows * options_.shape.hidden);
  found.active = active / rows;
  found.dead = static_cast<int>(std::count(counts.begin(), counts.end(), 0));
  for (size_t f = 0; f < features; ++f) {
    found.frequency.push_back(static_cast<double>(counts[f]) / rows);
    found.mean.push_back(sums[f] / rows);
  }
  return found;
}

DictionaryEvaluation DictionaryTrainer::evaluate(const CancelToken& cancel) {
  DictionaryEvaluation found = evaluate(held_out_, cancel);
  found.explained_variance = 1.0 - found.mse * found.rows * options_.shape.hidden / held_out_variation_;
  return found;
}

DictionaryEvaluation DictionaryTrainer::evaluate_training_rows(const CancelToken& cancel) {
  return evaluate(rows_->train(0, static_cast<size_t>(std::min(static_cast<uint64_t>(options_.held_out),
                                                               rows_->train_rows()))),
                  cancel);
}

double DictionaryTrainer::activation_of(const Fired& fired) const {
  return static_cast<double>(fired.value) * static_cast<double>(model_.norm(fired.feature));
}

DictionaryWeights DictionaryTrainer::weights(bool folded) const {
  DictionaryWeights weights{
      model_.encoder(), model_.encoder_bias(), model_.decoder(), model_.decoder_bias(), {}, model_.skip()};
  const SparseShape& shape = options_.shape;
  const auto hidden = static_cast<size_t>(shape.hidden);
  if (shape.architecture == Architecture::kBatchTopK)
    weights.thresholds.assign(static_cast<size_t>(shape.features), model_.batch_threshold());
  for (int f = 0; f < shape.features; ++f) {
    if (shape.architecture == Architecture::kJumpRelu) weights.thresholds.push_back(model_.threshold(f));
    // relu(w x + b) d = relu(|d| w x + |d| b) d / |d|. The other architectures have decoder rows of length 1.
    const float norm = model_.norm(f);
    if (shape.architecture != Architecture::kRelu || !folded || !(norm > 0)) continue;
    const size_t row = static_cast<size_t>(f) * hidden;
    for (size_t k = row; k < row + hidden; ++k) {
      weights.encoder[k] *= norm;
      weights.decoder[k] /= norm;
    }
    weights.encoder_bias[static_cast<size_t>(f)] *= norm;
  }
  return weights;
}

std::vector<std::vector<StrongRow>> DictionaryTrainer::strongest(const std::vector<int32_t>& features,
                                                                 size_t count, const CancelToken& cancel) {
  std::vector<std::vector<StrongRow>> found(features.size());
  std::vector<std::vector<Fired>> fired;
  std::vector<float> errors;
  over(held_out_, cancel, [&](size_t first, size_t rows) {
    model_.encode(x_, targets(), static_cast<int>(rows), fired, errors);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t wanted = 0; wanted < features.size(); ++wanted) {
        const auto one =
            std::lower_bound(fired[i].begin(), fired[i].end(), features[wanted],
                             [](const Fired& entry, int32_t feature) { return entry.feature < feature; });
        if (one == fired[i].end() || one->feature != features[wanted]) continue;
        found[wanted].push_back({held_out_[first + i], activation_of(*one)});
      }
    }
  });
  for (std::vector<StrongRow>& rows : found) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const StrongRow& a, const StrongRow& b) { return a.activation > b.activation; });
    if (rows.size() > count) rows.resize(count);
  }
  return found;
}

}  // namespace tapline::dictionaries
