#include "dictionaries/sparse_model.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "dictionaries/sparse_scratch.h"
#include "numbers/flush_denormals.h"
#include "numbers/random.h"

namespace tapline::dictionaries {

namespace {

constexpr int kWidth = FloatPanels::kWidth;
constexpr int kBlocksPerSlice = 16;  // 16 * 32 deep: slices of weights of 64 KiB
constexpr uint64_t kInitialWeightsStream = 6;
constexpr uint64_t kInitialDecoderStream = 7;
/// How fast the threshold of kBatchTopK follows its batches.
constexpr float kThresholdRate = 0.1F;
/// Relative to the threshold: smaller activations are certainly not among the largest of a batch.
constexpr float kSurelyBelow = 0.5F;

}  // namespace

SparseModel::SparseModel(const SparseShape& shape, ThreadTeam& team)
    : shape_(shape),
      team_(team),
      padded_hidden_(round_up(shape.hidden, kWidth)),
      padded_features_(round_up(shape.features, kWidth)),
      panels_(padded_features_ / kWidth),
      encoder_(static_cast<size_t>(padded_features_) * static_cast<size_t>(padded_hidden_)),
      decoder_(static_cast<size_t>(padded_features_) * static_cast<size_t>(padded_hidden_)),
      encoder_bias_(static_cast<size_t>(padded_features_)),
      decoder_bias_(static_cast<size_t>(padded_hidden_)),
      log_threshold_(static_cast<size_t>(padded_features_)),
      skip_(shape.skip ? static_cast<size_t>(padded_hidden_) * static_cast<size_t>(padded_hidden_) : 0),
      norms_(static_cast<size_t>(padded_features_), 0.0F),
      thresholds_(static_cast<size_t>(padded_features_), 0.0F),
      last_fired_(static_cast<size_t>(padded_features_), 0),
      activation_sums_(static_cast<size_t>(padded_features_), 0.0F) {
  // Features that only pad a panel never fire.
  for (int f = shape.features; f < padded_features_; ++f)
    encoder_bias_.values[static_cast<size_t>(f)] = -FLT_MAX;
}

SparseModel::~SparseModel() = default;

// Where a matrix in panels has a number: by feature, or by output for the skip term.
size_t SparseModel::place(int row, int dimension) const {
  return (static_cast<size_t>(row / kWidth) * static_cast<size_t>(padded_hidden_) +
          static_cast<size_t>(dimension)) *
             kWidth +
         static_cast<size_t>(row % kWidth);
}

void SparseModel::initialise(uint64_t seed, float norm, float threshold) {
  const auto hidden = static_cast<size_t>(shape_.hidden);
  team_.parallel_for(shape_.features, [&](int f) {
    const auto direction = [&](uint64_t stream) {
      Random random(seed + static_cast<uint64_t>(f) * 0x9e3779b97f4a7c15U, stream);
      std::vector<double> values(hidden);
      double square = 0;
      for (double& value : values) {
        value = random.normal();
        square += value * value;
      }
      const double unit = 1.0 / std::sqrt(std::max(square, 1e-300));
      for (double& value : values) value *= unit;
      return values;
    };
    const std::vector<double> read = direction(kInitialWeightsStream);
    const std::vector<double> written = shape_.transcodes ? direction(kInitialDecoderStream) : read;
    const double length = shape_.architecture == Architecture::kRelu ? static_cast<double>(norm) : 1.0;
    float* row = decoder_.values.data() + static_cast<size_t>(f) * static_cast<size_t>(padded_hidden_);
    for (size_t k = 0; k < hidden; ++k) {
      row[k] = static_cast<float>(written[k] * length);
      encoder_.values[place(f, static_cast<int>(k))] =
          static_cast<float>(read[k] * static_cast<double>(norm));
    }
    measure_norm(f);
  });
  if (shape_.architecture != Architecture::kJumpRelu) return;
  std::fill_n(log_threshold_.values.data(), padded_features_, std::log(threshold));
  for (int f = 0; f < padded_features_; ++f) measure_threshold(f);
}

void SparseModel::start_from(const std::vector<float>& encoder, const std::vector<float>& encoder_bias,
                             const std::vector<float>& decoder, const std::vector<float>& decoder_bias) {
  pack(encoder, shape_.features, encoder_.values);
  pad(decoder, decoder_.values);
  std::copy(encoder_bias.begin(), encoder_bias.end(), encoder_bias_.values.data());
  std::copy(decoder_bias.begin(), decoder_bias.end(), decoder_bias_.values.data());
  for (int f = 0; f < shape_.features; ++f) measure_norm(f);
}

void SparseModel::measure_threshold(int feature) {
  thresholds_[static_cast<size_t>(feature)] = std::exp(log_threshold_.values[static_cast<size_t>(feature)]);
}

void SparseModel::measure_norm(int feature) {
  const float* row =
      decoder_.values.data() + static_cast<size_t>(feature) * static_cast<size_t>(padded_hidden_);
  norms_[static_cast<size_t>(feature)] = std::sqrt(kernels_.dot(row, row, padded_hidden_ / kWidth));
}

void SparseModel::over_rows(int rows, const std::function<void(int, int)>& body) {
  // At least two tasks per thread if there are enough rows; no sum is over rows here.
  const int wanted = round_up(std::max(1, rows / (2 * team_.size())), 12);
  const int step = std::min(kRowsPerTask, wanted);
  team_.parallel_for((rows + step - 1) / step, [&](int task) {
    const FlushDenormals flush;
    body(task * step, std::min(rows, (task + 1) * step));
  });
}

// out = a b over rows [from, to) of a, or out + a b: b is [a's columns, 32].
void SparseModel::product(const FloatPanels& a, int from, int to, const float* b, float* out,
                          bool add) const {
  for (int block = 0; block < a.panels(); block += kBlocksPerSlice) {
    kernels_.rows_times_panel(
        a.panel(block, from), a.stride(), b + static_cast<std::ptrdiff_t>(block) * kWidth * kWidth,
        std::min(kBlocksPerSlice, a.panels() - block), to - from, out, add || block > 0);
  }
}

// encoder x of 32 features and rows [from, to), without the bias.
void SparseModel::multiply_encoder(const RowBatch& x, int from, int to, int panel, float* h) const {
  const size_t size = static_cast<size_t>(padded_hidden_) * kWidth;
  product(x.panels, from, to, encoder_.values.data() + static_cast<size_t>(panel) * size, h);
}

void SparseModel::find_fired(const RowBatch& x, int rows, bool training, float least) {
  if (rows_.size() < static_cast<size_t>(rows)) rows_.resize(static_cast<size_t>(rows));
  over_rows(rows, [&](int from, int to) {
    const Borrowed scratch(*this);
    find_fired(x, from, to, training, least, *scratch);
  });
}

void SparseModel::find_fired(const RowBatch& x, int from, int to, bool training, float least,
                             Scratch& scratch) {
  const int rows = to - from;
  const auto panels = static_cast<size_t>(panels_);
  const size_t products = panels * static_cast<size_t>(rows) * kWidth;
  if (scratch.products.size() < products) scratch.products = AlignedArray<float>(products);
  scratch.maxima.resize(panels * static_cast<size_t>(rows));
  const std::ptrdiff_t panel_stride = static_cast<std::ptrdiff_t>(rows) * kWidth;
  for (int panel = 0; panel < panels_; ++panel) {
    float* h = scratch.products.data() + panel * panel_stride;
    multiply_encoder(x, from, to, panel, h);
    kernels_.bias_maximum(h, encoder_bias_.values.data() + panel * kWidth, rows,
                          scratch.maxima.data() + panel, panels_);
  }
  const bool by_row = shape_.architecture == Architecture::kTopK;
  const bool jumps = shape_.architecture == Architecture::kJumpRelu;
  const auto k = static_cast<size_t>(shape_.k);
  for (int i = 0; i < rows; ++i) {
    Row& row = rows_[static_cast<size_t>(from + i)];
    row.active.clear();
    row.near.clear();
    row.aux.clear();
    const float* maxima = scratch.maxima.data() + static_cast<size_t>(i) * panels;
    const float* h = scratch.products.data() + static_cast<std::ptrdiff_t>(i) * kWidth;
    float bound = std::max(least, 0.0F);
    if (by_row && panels > k) {
      // k panels have a value as large as the k-th largest of the panels' maxima, so the row's k largest
      // values are as large.
      scratch.sorted.assign(maxima, maxima + panels);
      const auto last = scratch.sorted.begin() + static_cast<std::ptrdiff_t>(k) - 1;
      std::nth_element(scratch.sorted.begin(), last, scratch.sorted.end(), std::greater<float>());
      bound = std::max(bound, std::nextafter(*last, -1.0F));
    }
    scratch.candidates.clear();
    for (int panel = 0; panel < panels_; ++panel) {
      if (!(maxima[panel] > bound)) continue;
      const float* values = h + panel * panel_stride;
      for (int j = 0; j < kWidth; ++j) {
        if (values[j] > bound) scratch.candidates.push_back({panel * kWidth + j, values[j]});
      }
    }
    if (by_row) keep_largest(scratch.candidates, k);
    for (const auto& [feature, value] : scratch.candidates) {
      const float reach = jumps ? threshold(feature) : 0.0F;
      if (!jumps || value > reach) {
        row.active.push_back({feature, value, 0.0F});
      } else if (training && value > reach - shape_.bandwidth / 2) {
        row.near.push_back({feature, value, 0.0F});
      }
    }
    if (!training || dead_.empty()) continue;
    scratch.candidates.clear();
    for (const int32_t feature : dead_) {
      const float value = h[feature / kWidth * panel_stride + feature % kWidth];
      if (value > 0) scratch.candidates.push_back({feature, value});
    }
    keep_largest(scratch.candidates, std::min(static_cast<size_t>(aux_k_), scratch.candidates.size()));
    for (const auto& [feature, value] : scratch.candidates) row.aux.push_back({feature, value, 0.0F});
  }
}

// kBatchTopK: keeps the rows * k largest of all rows; in ties the earlier row, then the lower feature.
void SparseModel::keep_largest_of_batch(int rows) {
  const size_t wanted = static_cast<size_t>(rows) * static_cast<size_t>(shape_.k);
  std::vector<float> values;
  for (int i = 0; i < rows; ++i)
    for (const Entry& entry : rows_[static_cast<size_t>(i)].active) values.push_back(entry.value);
  if (values.size() <= wanted) {
    least_kept_ = values.empty() ? 0.0F : *std::min_element(values.begin(), values.end());
    return;
  }
  const auto last = values.begin() + static_cast<std::ptrdiff_t>(wanted) - 1;
  std::nth_element(values.begin(), last, values.end(), std::greater<float>());
  least_kept_ = *last;
  auto ties = wanted - static_cast<size_t>(std::count_if(values.begin(), last,
                                                         [&](float value) { return value > least_kept_; }));
  for (int i = 0; i < rows; ++i) {
    std::vector<Entry>& active = rows_[static_cast<size_t>(i)].active;
    const auto out = [&](const Entry& entry) {
      if (entry.value != least_kept_) return entry.value < least_kept_;
      if (ties == 0) return true;
      --ties;
      return false;
    };
    active.erase(std::remove_if(active.begin(), active.end(), out), active.end());
  }
}

// Of rows [from, to): errors_ = y' - y, and its square in square_errors_.
void SparseModel::decode_rows(const RowBatch& x, const RowBatch& y, int from, int to) {
  const int blocks = padded_hidden_ / kWidth;
  for (int i = from; i < to; ++i) std::copy_n(decoder_bias_.values.data(), padded_hidden_, error_row(i));
  if (shape_.skip) add_skip(x, from, to);
  over_entries(from, to, &Row::active, [&](int row, const Entry& entry) {
    kernels_.add_scaled(decoder_row(entry.feature), entry.value, blocks, error_row(row));
  });
  for (int i = from; i < to; ++i) {
    kernels_.add_scaled(y.row(i), -1.0F, blocks, error_row(i));
    square_errors_[static_cast<size_t>(i)] = kernels_.dot(error_row(i), error_row(i), blocks);
  }
}

SparseFigures SparseModel::train(const RowBatch& x, const RowBatch& y, int rows, const SparseStep& options) {
  ++updates_;
  dead_.clear();
  for (int f = 0; f < shape_.features; ++f) {
    if (updates_ - last_fired_[static_cast<size_t>(f)] > options.dead_after) dead_.push_back(f);
  }
  SparseFigures figures;
  figures.dead = static_cast<int>(dead_.size());
  if (options.aux_k == 0 || options.aux_weight == 0) dead_.clear();
  aux_k_ = options.aux_k;
  square_errors_.resize(static_cast<size_t>(rows));

  const double elements = static_cast<double>(rows) * shape_.hidden;
  const auto scale = static_cast<float>(2.0 / elements);
  AdamStep adam;
  adam.epsilon = options.epsilon;
  const auto update = static_cast<double>(updates_);
  adam.rate =
      static_cast<float>(options.learning_rate / (1.0 - std::pow(static_cast<double>(adam.beta1), update)));
  adam.inverse_sqrt_bias2 =
      static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(adam.beta2), update)));

  penalties_.assign(static_cast<size_t>(padded_features_), 0.0F);
  const bool penalised = shape_.architecture == Architecture::kRelu;
  const auto penalty = penalised ? static_cast<float>(options.sparsity / elements) : 0.0F;
  for (size_t f = 0; f < norms_.size(); ++f) penalties_[f] = penalty * norms_[f];
  const std::vector<float> norms = norms_;

  size_t active = 0;
  if (many_fire(x, rows)) {
    active = dense_step(x, y, rows, scale, penalty, adam);
  } else {
    active = listed_step(x, y, rows, scale, penalty, options, adam);
  }
  const double square = std::accumulate(square_errors_.begin(), square_errors_.end(), 0.0);
  figures.square_error = square / elements;
  figures.active = static_cast<double>(active) / rows;
  if (penalised) {
    double sum = 0;
    for (size_t f = 0; f < norms.size(); ++f)
      sum += static_cast<double>(activation_sums_[f]) * static_cast<double>(norms[f]);
    figures.penalty = sum / elements;
  }
  return figures;
}

// A step on lists of active features.
size_t SparseModel::listed_step(const RowBatch& x, const RowBatch& y, int rows, float scale, float penalty,
                                const SparseStep& options, const AdamStep& adam) {
  const bool batchwise = shape_.architecture == Architecture::kBatchTopK;
  const size_t numbers = static_cast<size_t>(rows) * static_cast<size_t>(padded_hidden_);
  if (errors_.size() < numbers) errors_ = AlignedArray<float>(numbers);
  if (!dead_.empty() && aux_errors_.size() < numbers) aux_errors_ = AlignedArray<float>(numbers);
  if (shape_.skip && error_panels_.rows() < rows) error_panels_ = FloatPanels(rows, shape_.hidden);
  const float least = batchwise ? kSurelyBelow * batch_threshold_ : 0.0F;
  find_fired(x, rows, true, least);
  size_t active = 0;
  const auto count = [&] {
    active = 0;
    for (int i = 0; i < rows; ++i) active += rows_[static_cast<size_t>(i)].active.size();
  };
  count();
  if (batchwise) {
    if (least > 0 && active < static_cast<size_t>(rows) * static_cast<size_t>(shape_.k)) {
      find_fired(x, rows, true, 0.0F);
    }
    keep_largest_of_batch(rows);
    batch_threshold_ =
        updates_ == 1 ? least_kept_ : batch_threshold_ + kThresholdRate * (least_kept_ - batch_threshold_);
    count();
  }
  const float aux_scale = scale * options.aux_weight;
  over_rows(rows, [&](int from, int to) {
    decode_rows(x, y, from, to);
    if (shape_.skip) pack_errors(from, to);
    differentiate_rows(from, to, scale, aux_scale);
  });
  index_by_feature(rows);
  team_.parallel_for(panels_, [&](int panel) {
    const FlushDenormals flush;
    const Borrowed scratch(*this);
    update_panel(x, panel, rows, scale, aux_scale, penalty, adam, *scratch);
    if (shape_.architecture == Architecture::kJumpRelu)
      update_thresholds(panel, options.sparsity / static_cast<float>(rows), adam);
  });
  team_.parallel_for(padded_hidden_ / kWidth, [&](int block) {
    alignas(64) float sums[kWidth] = {};
    for (int i = 0; i < rows; ++i) kernels_.add_scaled(error_row(i) + block * kWidth, 1.0F, 1, sums);
    decoder_bias_.update(kernels_, static_cast<size_t>(block * kWidth), sums, scale, nullptr, 1, adam);
  });
  if (shape_.skip) update_skip(x, rows, scale, adam);
  return active;
}

void SparseModel::encode(const RowBatch& x, const RowBatch& y, int rows,
                         std::vector<std::vector<Fired>>& fired, std::vector<float>& square_errors) {
  dead_.clear();
  square_errors_.resize(static_cast<size_t>(rows));
  fired.assign(static_cast<size_t>(rows), {});
  if (many_fire(x, rows)) {
    prepare_dense(rows);
    over_rows(rows, [&](int from, int to) {
      dense_forward(x, y, from, to);
      for (int panel = 0; panel < panels_; ++panel) {
        for (int i = from; i < to; ++i) {
          const float* values = activations_.panel(panel, i);
          for (int j = 0; j < kWidth; ++j)
            if (values[j] > 0) fired[static_cast<size_t>(i)].push_back({panel * kWidth + j, values[j]});
        }
      }
    });
  } else {
    const size_t numbers = static_cast<size_t>(rows) * static_cast<size_t>(padded_hidden_);
    if (errors_.size() < numbers) errors_ = AlignedArray<float>(numbers);
    find_fired(x, rows, false, shape_.architecture == Architecture::kBatchTopK ? batch_threshold_ : 0.0F);
    over_rows(rows, [&](int from, int to) { decode_rows(x, y, from, to); });
    for (int i = 0; i < rows; ++i) {
      for (const Entry& entry : rows_[static_cast<size_t>(i)].active)
        fired[static_cast<size_t>(i)].push_back({entry.feature, entry.value});
    }
  }
  square_errors = square_errors_;
}

std::vector<float> SparseModel::head(const AlignedArray<float>& values, int count) {
  return {values.data(), values.data() + count};
}

}  // namespace tapline::dictionaries
