#include "train/sparse_model.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "train/flush_denormals.h"
#include "train/random.h"

namespace tapline::train {

namespace {

constexpr int kWidth = FloatPanels::kWidth;
constexpr int kRowsPerTask = 96;     // rows that share a slice of weights while it is in the cache
constexpr int kBlocksPerSlice = 16;  // 16 * 32 deep: slices of weights of 64 KiB
constexpr uint64_t kInitialWeightsStream = 6;
/// How fast the threshold of kBatchTopK follows its batches.
constexpr float kThresholdRate = 0.1F;
/// Of the threshold: what a batch surely does not keep is not even listed.
constexpr float kSurelyBelow = 0.5F;

bool before(const Fired& a, const Fired& b) {
  return a.value != b.value ? a.value > b.value : a.feature < b.feature;
}

/// The k largest, ties to the lower feature; ascending by feature.
void keep_largest(std::vector<Fired>& found, size_t k) {
  if (found.size() > k) {
    std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(k) - 1, found.end(), before);
    found.resize(k);
  }
  std::sort(found.begin(), found.end(), [](const Fired& a, const Fired& b) { return a.feature < b.feature; });
}

}  // namespace

/// What one thread needs for rows, or for a panel of features.
struct SparseModel::Scratch {
  FloatPanels x;
  AlignedArray<float> products;  // [panels][rows][32]: h
  std::vector<float> maxima;     // [rows][panels]
  std::vector<float> sorted;     // [panels]
  std::vector<Fired> candidates;
  AlignedArray<float> encoder_gradient;  // [padded hidden / 32][32 features][32]
  AlignedArray<float> decoder_gradient;  // [32 features][padded hidden]
  AlignedArray<float> turned;            // [padded hidden][32 features]
};

class SparseModel::Borrowed {
 public:
  explicit Borrowed(SparseModel& model) : model_(model) {
    const std::lock_guard<std::mutex> lock(model.scratch_mutex_);
    if (model.scratch_.empty()) model.scratch_.push_back(std::make_unique<Scratch>());
    scratch_ = std::move(model.scratch_.back());
    model.scratch_.pop_back();
  }
  ~Borrowed() {
    const std::lock_guard<std::mutex> lock(model_.scratch_mutex_);
    model_.scratch_.push_back(std::move(scratch_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Scratch& operator*() const { return *scratch_; }

 private:
  SparseModel& model_;
  std::unique_ptr<Scratch> scratch_;
};

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
      norms_(static_cast<size_t>(padded_features_), 0.0F),
      thresholds_(static_cast<size_t>(padded_features_), 0.0F),
      last_fired_(static_cast<size_t>(padded_features_), 0) {
  // Features that only fill a panel up never fire.
  for (int f = shape.features; f < padded_features_; ++f)
    encoder_bias_.values[static_cast<size_t>(f)] = -FLT_MAX;
}

SparseModel::~SparseModel() = default;

size_t SparseModel::place(int feature, int dimension) const {
  return (static_cast<size_t>(feature / kWidth) * static_cast<size_t>(padded_hidden_) +
          static_cast<size_t>(dimension)) *
             kWidth +
         static_cast<size_t>(feature % kWidth);
}

void SparseModel::initialise(uint64_t seed, float norm, float threshold) {
  const auto hidden = static_cast<size_t>(shape_.hidden);
  team_.parallel_for(shape_.features, [&](int f) {
    Random random(seed + static_cast<uint64_t>(f) * 0x9e3779b97f4a7c15U, kInitialWeightsStream);
    std::vector<double> direction(hidden);
    double square = 0;
    for (double& value : direction) {
      value = random.normal();
      square += value * value;
    }
    const double factor = norm / std::sqrt(std::max(square, 1e-300));
    float* row = decoder_.values.data() + static_cast<size_t>(f) * static_cast<size_t>(padded_hidden_);
    for (size_t k = 0; k < hidden; ++k) {
      row[k] = static_cast<float>(direction[k] * factor);
      encoder_.values[place(f, static_cast<int>(k))] = row[k];
    }
    measure_norm(f);
  });
  if (shape_.architecture != Architecture::kJumpRelu) return;
  std::fill_n(log_threshold_.values.data(), padded_features_, std::log(threshold));
  for (int f = 0; f < padded_features_; ++f) measure_threshold(f);
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
  // At least two tasks a thread where there are enough rows; no sum goes over rows here.
  const int wanted = round_up(std::max(1, rows / (2 * team_.size())), 12);
  const int step = std::min(kRowsPerTask, wanted);
  team_.parallel_for((rows + step - 1) / step, [&](int task) {
    const FlushDenormals flush;
    body(task * step, std::min(rows, (task + 1) * step));
  });
}

void SparseModel::find_fired(const float* x, int rows, bool training, float least) {
  if (rows_.size() < static_cast<size_t>(rows)) rows_.resize(static_cast<size_t>(rows));
  over_rows(rows, [&](int from, int to) {
    const Borrowed scratch(*this);
    find_fired(x, from, to, training, least, *scratch);
  });
}

void SparseModel::find_fired(const float* x, int from, int to, bool training, float least, Scratch& scratch) {
  const int rows = to - from;
  const auto panels = static_cast<size_t>(panels_);
  if (scratch.x.rows() != rows) scratch.x = FloatPanels(rows, shape_.hidden);
  const size_t products = panels * static_cast<size_t>(rows) * kWidth;
  if (scratch.products.size() < products) scratch.products = AlignedArray<float>(products);
  scratch.maxima.resize(panels * static_cast<size_t>(rows));
  for (int i = 0; i < rows; ++i) {
    const float* row = x + static_cast<size_t>(from + i) * static_cast<size_t>(padded_hidden_);
    for (int block = 0; block < padded_hidden_ / kWidth; ++block)
      std::copy_n(row + block * kWidth, kWidth, scratch.x.panel(block, i));
  }
  const std::ptrdiff_t panel_stride = static_cast<std::ptrdiff_t>(rows) * kWidth;
  for (int panel = 0; panel < panels_; ++panel) {
    float* h = scratch.products.data() + panel * panel_stride;
    const float* weights =
        encoder_.values.data() + static_cast<size_t>(panel) * static_cast<size_t>(padded_hidden_) * kWidth;
    const int blocks = padded_hidden_ / kWidth;
    for (int block = 0; block < blocks; block += kBlocksPerSlice) {
      kernels_.rows_times_panel(scratch.x.panel(block), scratch.x.stride(),
                                weights + static_cast<std::ptrdiff_t>(block) * kWidth * kWidth,
                                std::min(kBlocksPerSlice, blocks - block), rows, h, block > 0);
    }
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
      // k panels have a value as large as the k-th largest of the panels' maxima: the row's k largest have,
      // too.
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

// kBatchTopK: of all that the rows list, the rows * k largest; ties to the earlier row, then the lower
// feature.
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

// error = x' - x; its square goes to square_errors_.
void SparseModel::decode_row(const float* x, int row, float* error) {
  const auto stride = static_cast<size_t>(padded_hidden_);
  const int blocks = padded_hidden_ / kWidth;
  std::copy_n(decoder_bias_.values.data(), padded_hidden_, error);
  for (const Entry& entry : rows_[static_cast<size_t>(row)].active)
    kernels_.add_scaled(decoder_.values.data() + static_cast<size_t>(entry.feature) * stride, entry.value,
                        blocks, error, kWidth);
  kernels_.add_scaled(x + static_cast<size_t>(row) * stride, -1.0F, blocks, error, kWidth);
  square_errors_[static_cast<size_t>(row)] = kernels_.dot(error, error, blocks);
}

// Gradients of the loss by what fires in a row.
void SparseModel::differentiate_row(int row, float scale, float aux_scale) {
  const auto stride = static_cast<size_t>(padded_hidden_);
  const int blocks = padded_hidden_ / kWidth;
  Row& own = rows_[static_cast<size_t>(row)];
  const float* error = errors_.data() + static_cast<size_t>(row) * stride;
  const auto decoder = [&](const Entry& entry) {
    return decoder_.values.data() + static_cast<size_t>(entry.feature) * stride;
  };
  for (std::vector<Entry>* list : {&own.active, &own.near})
    for (Entry& entry : *list) entry.gradient = scale * kernels_.dot(error, decoder(entry), blocks);
  if (dead_.empty()) return;
  // The dead features' sum against x - x', which counts as given.
  float* left = aux_errors_.data() + static_cast<size_t>(row) * stride;
  std::copy_n(error, padded_hidden_, left);
  for (const Entry& entry : own.aux) kernels_.add_scaled(decoder(entry), entry.value, blocks, left, kWidth);
  for (Entry& entry : own.aux) entry.gradient = aux_scale * kernels_.dot(left, decoder(entry), blocks);
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

SparseFigures SparseModel::train(const float* x, int rows, const SparseStep& options) {
  ++updates_;
  const bool batchwise = shape_.architecture == Architecture::kBatchTopK;
  dead_.clear();
  for (int f = 0; f < shape_.features; ++f) {
    if (updates_ - last_fired_[static_cast<size_t>(f)] > options.dead_after) dead_.push_back(f);
  }
  SparseFigures figures;
  figures.dead = static_cast<int>(dead_.size());
  if (options.aux_k == 0 || options.aux_weight == 0) dead_.clear();
  aux_k_ = options.aux_k;

  const size_t numbers = static_cast<size_t>(rows) * static_cast<size_t>(padded_hidden_);
  if (errors_.size() < numbers) errors_ = AlignedArray<float>(numbers);
  if (!dead_.empty() && aux_errors_.size() < numbers) aux_errors_ = AlignedArray<float>(numbers);
  square_errors_.resize(static_cast<size_t>(rows));

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

  const double elements = static_cast<double>(rows) * shape_.hidden;
  const auto scale = static_cast<float>(2.0 / elements);
  const auto aux_scale = static_cast<float>(2.0 * options.aux_weight / elements);
  over_rows(rows, [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      decode_row(x, i, errors_.data() + static_cast<size_t>(i) * static_cast<size_t>(padded_hidden_));
      differentiate_row(i, scale, aux_scale);
    }
  });
  index_by_feature(rows);

  AdamStep adam;
  adam.epsilon = options.epsilon;
  const auto update = static_cast<double>(updates_);
  adam.rate =
      static_cast<float>(options.learning_rate / (1.0 - std::pow(static_cast<double>(adam.beta1), update)));
  adam.inverse_sqrt_bias2 =
      static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(adam.beta2), update)));
  team_.parallel_for(panels_, [&](int panel) {
    const FlushDenormals flush;
    const Borrowed scratch(*this);
    update_panel(x, panel, rows, scale, aux_scale, options, adam, *scratch);
  });
  update_decoder_bias(rows, scale, adam);

  const double square = std::accumulate(square_errors_.begin(), square_errors_.end(), 0.0);
  figures.square_error = square / elements;
  figures.active = static_cast<double>(active) / rows;
  return figures;
}

// Gradients and updates of 32 features.
void SparseModel::update_panel(const float* x, int panel, int rows, float scale, float aux_scale,
                               const SparseStep& options, const AdamStep& adam, Scratch& scratch) {
  const auto stride = static_cast<size_t>(padded_hidden_);
  const int blocks = padded_hidden_ / kWidth;
  const size_t size = stride * kWidth;
  for (AlignedArray<float>* array : {&scratch.encoder_gradient, &scratch.decoder_gradient, &scratch.turned}) {
    if (array->size() != size) *array = AlignedArray<float>(size);
  }
  std::fill_n(scratch.encoder_gradient.data(), size, 0.0F);
  std::fill_n(scratch.decoder_gradient.data(), size, 0.0F);
  const bool penalised = shape_.architecture == Architecture::kRelu;
  const auto penalty = static_cast<float>(options.sparsity / (static_cast<double>(rows) * shape_.hidden));
  alignas(64) float bias_gradient[kWidth] = {};
  const int first = panel * kWidth;
  const int last = std::min(first + kWidth, shape_.features);
  for (int f = first; f < last; ++f) {
    const int j = f - first;
    float* encoder = scratch.encoder_gradient.data() + static_cast<std::ptrdiff_t>(j) * kWidth;
    float* decoder = scratch.decoder_gradient.data() + static_cast<size_t>(j) * stride;
    const float* own = decoder_.values.data() + static_cast<size_t>(f) * stride;
    const float norm = norms_[static_cast<size_t>(f)];
    float activation_sum = 0;
    for (size_t i = use_starts_[static_cast<size_t>(f)]; i < use_starts_[static_cast<size_t>(f) + 1]; ++i) {
      const Use& use = uses_[i];
      if (use.kind == Kind::kNear) continue;
      const bool aux = use.kind == Kind::kAux;
      const auto row = static_cast<size_t>(use.row) * stride;
      const float gradient = use.gradient + (penalised && !aux ? penalty * norm : 0.0F);
      kernels_.add_scaled((aux ? aux_errors_.data() : errors_.data()) + row,
                          use.value * (aux ? aux_scale : scale), blocks, decoder, kWidth);
      kernels_.add_scaled(x + row, gradient, blocks, encoder, kWidth * kWidth);
      bias_gradient[j] += gradient;
      if (!aux) activation_sum += use.value;
    }
    if (penalised) {
      if (norm > 0) kernels_.add_scaled(own, penalty * activation_sum / norm, blocks, decoder, kWidth);
    } else {
      kernels_.add_scaled(own, -kernels_.dot(decoder, own, blocks), blocks, decoder, kWidth);
    }
    const auto at = static_cast<size_t>(f) * stride;
    kernels_.adam(decoder_.values.data() + at, decoder_.m.data() + at, decoder_.v.data() + at, decoder, 1.0F,
                  nullptr, blocks, adam);
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
    kernels_.transpose(scratch.encoder_gradient.data() + static_cast<std::ptrdiff_t>(block) * kWidth * kWidth,
                       scratch.turned.data() + static_cast<std::ptrdiff_t>(block) * kWidth * kWidth);
  }
  const size_t at = static_cast<size_t>(panel) * size;
  kernels_.adam(encoder_.values.data() + at, encoder_.m.data() + at, encoder_.v.data() + at,
                scratch.turned.data(), 1.0F, nullptr, padded_hidden_, adam);
  kernels_.adam(encoder_bias_.values.data() + first, encoder_bias_.m.data() + first,
                encoder_bias_.v.data() + first, bias_gradient, 1.0F, nullptr, 1, adam);
  if (shape_.architecture == Architecture::kJumpRelu) update_thresholds(panel, rows, options, adam);
}

// kJumpRelu: the step at the threshold counts as a slope of 1 / bandwidth within half a bandwidth of it. The
// logarithm is trained, so that a threshold stays positive.
void SparseModel::update_thresholds(int panel, int rows, const SparseStep& options, const AdamStep& adam) {
  const int first = panel * kWidth;
  const int last = std::min(first + kWidth, shape_.features);
  const float penalty = options.sparsity / static_cast<float>(rows);
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
  kernels_.adam(log_threshold_.values.data() + first, log_threshold_.m.data() + first,
                log_threshold_.v.data() + first, gradient, 1.0F, nullptr, 1, adam);
  for (int f = first; f < last; ++f) measure_threshold(f);
}

void SparseModel::update_decoder_bias(int rows, float scale, const AdamStep& adam) {
  const auto stride = static_cast<size_t>(padded_hidden_);
  team_.parallel_for(padded_hidden_ / kWidth, [&](int block) {
    alignas(64) float sums[kWidth] = {};
    const float* column = errors_.data() + static_cast<std::ptrdiff_t>(block) * kWidth;
    for (int i = 0; i < rows; ++i)
      kernels_.add_scaled(column + static_cast<size_t>(i) * stride, 1.0F, 1, sums, kWidth);
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(block) * kWidth;
    kernels_.adam(decoder_bias_.values.data() + at, decoder_bias_.m.data() + at, decoder_bias_.v.data() + at,
                  sums, scale, nullptr, 1, adam);
  });
}

void SparseModel::encode(const float* x, int rows, std::vector<std::vector<Fired>>& fired,
                         std::vector<float>& square_errors) {
  dead_.clear();
  const float least = shape_.architecture == Architecture::kBatchTopK ? batch_threshold_ : 0.0F;
  find_fired(x, rows, false, least);
  const size_t numbers = static_cast<size_t>(rows) * static_cast<size_t>(padded_hidden_);
  if (errors_.size() < numbers) errors_ = AlignedArray<float>(numbers);
  square_errors_.resize(static_cast<size_t>(rows));
  over_rows(rows, [&](int from, int to) {
    for (int i = from; i < to; ++i)
      decode_row(x, i, errors_.data() + static_cast<size_t>(i) * static_cast<size_t>(padded_hidden_));
  });
  fired.assign(static_cast<size_t>(rows), {});
  for (int i = 0; i < rows; ++i) {
    for (const Entry& entry : rows_[static_cast<size_t>(i)].active)
      fired[static_cast<size_t>(i)].push_back({entry.feature, entry.value});
  }
  square_errors = square_errors_;
}

std::vector<float> SparseModel::head(const AlignedArray<float>& values, int count) {
  return {values.data(), values.data() + count};
}

}  // namespace tapline::train
