#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_team.h"
#include "dictionaries/fired.h"
#include "numbers/aligned_array.h"
#include "numbers/float_panels.h"
#include "numbers/kernels.h"

namespace tapline::dictionaries {

/// The activation f of pre-activations h = encoder x + encoder_bias; x' = decoder f + decoder_bias. Losses
/// are means over rows, |x' - x|^2 divided by the number of dimensions.
/// - kRelu: max(h, 0), with the penalty l1 / hidden * sum_i f_i |d_i| (Conerly et al., Anthropic, April
/// 2024);
/// - kTopK: max(h, 0) of the k largest (Gao et al. 2024, "Scaling and evaluating sparse autoencoders");
/// - kBatchTopK: the same of the rows * k largest of a batch; after training a threshold, the running mean of
///   the least that was kept (Bussmann, Leask & Nanda 2024, "BatchTopK Sparse Autoencoders");
/// - kJumpRelu: h if h > threshold, with a penalty on the number of active features, through rectangles of
///   `bandwidth` around the thresholds (Rajamanoharan et al. 2024, "Jumping Ahead").
enum class Architecture : uint8_t { kRelu, kTopK, kBatchTopK, kJumpRelu };

struct SparseShape {
  Architecture architecture = Architecture::kTopK;
  int hidden = 0;
  int features = 0;
  int k = 0;            ///< kTopK and kBatchTopK
  float bandwidth = 0;  ///< kJumpRelu
  /// A transcoder predicts a target of its input, of the same width: y' instead of x', and y in all losses.
  bool transcodes = false;
  /// y' = decoder f + decoder_bias + skip x (Paulo, Shabalin & Belrose 2025, "Transcoders Beat Sparse
  /// Autoencoders").
  bool skip = false;
};

struct SparseStep {
  float learning_rate = 0;
  float epsilon = 1e-8F;
  /// Weight of the penalty: of the L1 term, or of a row's number of active features.
  float sparsity = 0;
  /// A feature that has not fired for more updates is dead. The auxiliary loss has the `aux_k` dead features
  /// of largest h rebuild what the others leave (Gao et al. 2024, section A.2), weighed by `aux_weight`.
  int64_t dead_after = 0;
  int aux_k = 0;
  float aux_weight = 0;
};

struct SparseFigures {
  double square_error = 0;  ///< mean over rows of |x' - x|^2 / hidden
  double penalty = 0;       ///< kRelu: mean over rows of sum_i f_i |d_i| / hidden
  double active = 0;        ///< mean number of active features per row
  int dead = 0;             ///< features, before the update
};

/// Named arrays of a model in a checkpoint.
using NamedNumbers = std::vector<std::pair<std::string, std::vector<float>>>;

/// Input rows, contiguous and in panels for products.
struct RowBatch {
  RowBatch() = default;
  RowBatch(int rows, int hidden)
      : stride(round_up(hidden, FloatPanels::kWidth)),
        values(static_cast<size_t>(rows) * static_cast<size_t>(stride)),
        panels(rows, hidden) {}

  float* row(int index) { return values.data() + static_cast<size_t>(index) * static_cast<size_t>(stride); }
  const float* row(int index) const {
    return values.data() + static_cast<size_t>(index) * static_cast<size_t>(stride);
  }
  /// Copies a row into the panels.
  void pack(int index) {
    for (int block = 0; block < panels.panels(); ++block)
      std::copy_n(row(index) + block * FloatPanels::kWidth, FloatPanels::kWidth, panels.panel(block, index));
  }

  int stride = 0;  ///< `hidden`, rounded up with zeros
  AlignedArray<float> values;
  FloatPanels panels;
};

/// The weights of a sparse dictionary with Adam's moments.
///
/// Only the encoder's product of a step is dense. Active features are decoded, and their gradients collected,
/// feature by feature: with 32 of 16,384 features active, each is a 500th of the dense work. A kRelu model,
/// in which half of the features fire at first, uses dense products for everything while many fire. Every sum
/// has a fixed order, so results do not depend on the number of threads. A skip term is one more dense
/// product.
///
/// Decoder rows have length 1 and lose the part of their gradient along themselves (Gao et al. 2024, section
/// A.1), except for kRelu, whose penalty counts their lengths.
class SparseModel {
 public:
  SparseModel(const SparseShape& shape, ThreadTeam& team);
  ~SparseModel();

  /// Random directions: encoder rows of length `norm`, decoder rows of the same direction, or of another one
  /// for transcoders, and of length 1, or `norm` for kRelu; biases and skip term of 0.
  void initialise(uint64_t seed, float norm, float threshold);

  /// Instead of random directions: [features, hidden], [features], [features, hidden], [hidden].
  void start_from(const std::vector<float>& encoder, const std::vector<float>& encoder_bias,
                  const std::vector<float>& decoder, const std::vector<float>& decoder_bias);

  /// One update on the first rows of x and their targets y: of an autoencoder x itself.
  SparseFigures train(const RowBatch& x, const RowBatch& y, int rows, const SparseStep& step);

  /// Active features of rows as after training, and each row's |y' - y|^2.
  void encode(const RowBatch& x, const RowBatch& y, int rows, std::vector<std::vector<Fired>>& fired,
              std::vector<float>& square_errors);

  int64_t updates() const { return updates_; }
  /// kBatchTopK: the threshold for h.
  float batch_threshold() const { return batch_threshold_; }
  /// kJumpRelu: the threshold of one feature.
  float threshold(int feature) const { return thresholds_[static_cast<size_t>(feature)]; }
  /// Length of a feature's decoder row.
  float norm(int feature) const { return norms_[static_cast<size_t>(feature)]; }

  /// [features, hidden]
  std::vector<float> encoder() const { return unpacked(encoder_.values, shape_.features); }
  std::vector<float> decoder() const { return unpadded(decoder_.values); }  ///< [features, hidden]
  std::vector<float> encoder_bias() const { return head(encoder_bias_.values, shape_.features); }
  std::vector<float> decoder_bias() const { return head(decoder_bias_.values, shape_.hidden); }
  /// [hidden, hidden], by output; empty without a skip term.
  std::vector<float> skip() const { return unpacked(skip_.values, shape_.skip ? shape_.hidden : 0); }

  /// Everything that the next update depends on.
  NamedNumbers state() const;
  /// Throws kInvalidArgument for the state of a different model.
  void restore(const NamedNumbers& state);

 private:
  struct Trained {  ///< numbers, and Adam's moments of them
    AlignedArray<float> values, m, v;
    explicit Trained(size_t size) : values(size), m(size), v(size) {}
    /// Adam on rows of 32 numbers from `at` on; see Kernels::adam.
    void update(const Kernels& kernels, size_t at, const float* gradient, float scale, const float* shrink,
                int rows, const AdamStep& step) {
      kernels.adam(values.data() + at, m.data() + at, v.data() + at, gradient, scale, shrink, rows, step);
    }
  };
  struct Entry {
    int32_t feature;
    float value;
    float gradient;  ///< of the loss by h; for `near` ones by f
  };
  struct Row {
    std::vector<Entry> active;
    std::vector<Entry> near;  ///< kJumpRelu: within half a bandwidth below the threshold
    std::vector<Entry> aux;   ///< dead features that the auxiliary loss takes
  };
  enum class Kind : uint8_t { kActive, kNear, kAux };
  struct Use {  ///< an Entry seen from its feature
    int32_t row;
    Kind kind;
    float value;
    float gradient;
  };
  struct Scratch;
  class Borrowed;

  static std::vector<float> head(const AlignedArray<float>& values, int count);
  std::vector<float> unpacked(const AlignedArray<float>& panels, int rows) const;
  void pack(const std::vector<float>& from, int rows, AlignedArray<float>& panels) const;
  std::vector<float> unpadded(const AlignedArray<float>& rows) const;
  void pad(const std::vector<float>& from, AlignedArray<float>& rows) const;
  size_t place(int row, int dimension) const;
  float* error_row(int row) {
    return errors_.data() + static_cast<size_t>(row) * static_cast<size_t>(padded_hidden_);
  }
  const float* decoder_row(int feature) const {
    return decoder_.values.data() + static_cast<size_t>(feature) * static_cast<size_t>(padded_hidden_);
  }
  template <class Visit>
  void over_entries(int from, int to, std::vector<Entry> Row::*list, const Visit& visit);
  void over_rows(int rows, const std::function<void(int, int)>& body);
  void product(const FloatPanels& a, int from, int to, const float* b, float* out, bool add = false) const;
  const float* skip_panel(int block) const {
    return skip_.values.data() + place(block * FloatPanels::kWidth, 0);
  }
  void multiply_encoder(const RowBatch& x, int from, int to, int panel, float* h) const;
  void find_fired(const RowBatch& x, int rows, bool training, float least);
  void find_fired(const RowBatch& x, int from, int to, bool training, float least, Scratch& scratch);
  void keep_largest_of_batch(int rows);
  void decode_rows(const RowBatch& x, const RowBatch& y, int from, int to);
  void differentiate_rows(int from, int to, float scale, float aux_scale);
  void index_by_feature(int rows);
  void update_panel(const RowBatch& x, int panel, int rows, float scale, float aux_scale, float penalty,
                    const AdamStep& adam, Scratch& scratch);
  void update_thresholds(int panel, float penalty, const AdamStep& adam);
  size_t listed_step(const RowBatch& x, const RowBatch& y, int rows, float scale, float penalty,
                     const SparseStep& options, const AdamStep& adam);
  bool many_fire(const RowBatch& x, int rows);
  void prepare_dense(int rows);
  void dense_forward(const RowBatch& x, const RowBatch& y, int from, int to);
  size_t dense_step(const RowBatch& x, const RowBatch& y, int rows, float scale, float penalty,
                    const AdamStep& adam);
  void add_skip(const RowBatch& x, int from, int to);
  void pack_errors(int from, int to);
  void update_skip(const RowBatch& x, int rows, float scale, const AdamStep& adam);
  void measure_norm(int feature);
  void measure_threshold(int feature);

  static constexpr int kRowsPerTask = 96;  // rows that share a slice of weights while it is in the cache

  const Kernels& kernels_ = best_kernels();
  SparseShape shape_;
  ThreadTeam& team_;
  int padded_hidden_, padded_features_, panels_;
  Trained encoder_;  // panels of 32 features, each [padded hidden][32]: as the product reads it
  Trained decoder_;  // [padded features][padded hidden]
  Trained encoder_bias_, decoder_bias_, log_threshold_;
  Trained skip_;  // as encoder_, by output; empty without a skip term
  std::vector<float> norms_;
  std::vector<float> thresholds_;
  std::vector<int64_t> last_fired_;  // update
  int64_t updates_ = 0;
  float batch_threshold_ = 0;
  float least_kept_ = 0;

  // One step.
  std::vector<Row> rows_;
  std::vector<int32_t> dead_;
  int aux_k_ = 0;
  // [rows][padded hidden]: y' - y, and the same after the auxiliary loss
  AlignedArray<float> errors_, aux_errors_;
  std::vector<float> square_errors_;
  std::vector<float> activation_sums_;  // [padded features]: over the rows
  std::vector<float> penalties_;        // [padded features]: gradient of the L1 term by an activation
  std::vector<size_t> use_starts_;      // [padded features + 1]
  std::vector<Use> uses_;

  FloatPanels error_panels_;  // [rows, hidden]: y' - y, of a dense step or for the skip term

  // A dense step.
  FloatPanels activations_, gradients_;  // [rows, features]: f, and of the loss by f
  FloatPanels decoder_panels_;           // [features, hidden]
  FloatPanels decoder_turned_;           // [hidden, features]

  std::mutex scratch_mutex_;
  std::vector<std::unique_ptr<Scratch>> scratch_;
};

// Visits entries of rows [from, to), those of a row ascending by feature. If there are many, a slice of
// features at a time, so that its decoder rows are read from memory once for all rows.
template <class Visit>
void SparseModel::over_entries(int from, int to, std::vector<Entry> Row::*list, const Visit& visit) {
  constexpr size_t kSliceBytes = size_t{256} * 1024;
  const int slice =
      std::max(1, static_cast<int>(kSliceBytes / (static_cast<size_t>(padded_hidden_) * sizeof(float))));
  const auto slices = static_cast<size_t>((shape_.features + slice - 1) / slice);
  size_t entries = 0;
  for (int i = from; i < to; ++i) entries += (rows_[static_cast<size_t>(i)].*list).size();
  const bool many = entries >= slices * static_cast<size_t>(to - from);
  const int step = many ? slice : shape_.features;
  std::vector<size_t> next(static_cast<size_t>(to - from), 0);
  for (int last = std::min(step, shape_.features);; last = std::min(last + step, shape_.features)) {
    for (int i = from; i < to; ++i) {
      std::vector<Entry>& entries_of_row = rows_[static_cast<size_t>(i)].*list;
      size_t& at = next[static_cast<size_t>(i - from)];
      for (; at < entries_of_row.size() && entries_of_row[at].feature < last; ++at)
        visit(i, entries_of_row[at]);
    }
    if (last == shape_.features) break;
  }
}

}  // namespace tapline::dictionaries
