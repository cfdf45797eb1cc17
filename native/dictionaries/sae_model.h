#pragma once

#include <vector>

#include "base/thread_team.h"
#include "dictionaries/sparse_autoencoder.h"
#include "numbers/aligned_array.h"
#include "numbers/float_panels.h"
#include "numbers/kernels.h"

namespace tapline::dictionaries {

/// Activations of a data set and everything that one pass over it computes.
struct SaeBatch {
  SaeBatch(int rows, int hidden, int features)
      : x(rows, hidden),
        activations(rows, features),
        errors(rows, hidden),
        square_errors(static_cast<size_t>(rows)) {}

  double square_error() const;

  FloatPanels x;
  FloatPanels activations;           // f
  FloatPanels errors;                // x' - x
  std::vector<float> square_errors;  // |x' - x|^2 of each example
};

/// The weights of a sparse autoencoder, Adam's moments, and one training step. A step is two parallel loops:
/// over examples (encode, decode, error, gradient of the activations), then over strips of 32 hidden
/// dimensions (gradients of the weights, Adam, both layouts of the new weights); weights and gradients never
/// leave the cache in between.
class SaeModel {
 public:
  SaeModel(int hidden, int features, const SaeWeights& weights, ThreadTeam& team);

  /// Fills activations, errors and square_errors of `batch`.
  void forward(SaeBatch& batch);

  /// One Adam update (number `update`, from 1) on a whole batch; `l1` is the weight of the decoder-weighted
  /// L1 norm. Returns the loss before the update, with `reported_l1` for its L1 weight.
  double train(SaeBatch& batch, int update, float learning_rate, float epsilon, float l1, float reported_l1);

  /// Loss of a batch after forward().
  double loss(const SaeBatch& batch, float l1) const;

  /// Norm of each decoder column.
  const std::vector<float>& decoder_norms() const { return norms_; }

  SaeWeights weights() const;

 private:
  struct Moments {
    FloatPanels m, v;
  };

  void forward_rows(SaeBatch& batch, int from, int to);
  void backward_rows(SaeBatch& batch, int from, int to, float scale);
  void update_strip(const SaeBatch& batch, int strip, float scale, const AdamStep& step);
  void over_rows(int rows, const std::function<void(int, int)>& body);
  void store_transposed(const FloatPanels& weights, int strip, FloatPanels& out);
  void measure_norms();

  const Kernels& kernels_ = best_kernels();
  ThreadTeam& team_;
  int hidden_, features_;
  // [features, hidden], the layout that Adam works on, and [hidden, features], for products over hidden
  // dimensions.
  FloatPanels encoder_, decoder_, encoder_transposed_, decoder_transposed_;
  Moments encoder_moments_, decoder_moments_;
  AlignedArray<float> encoder_bias_, decoder_bias_, encoder_bias_m_, encoder_bias_v_, decoder_bias_m_,
      decoder_bias_v_;
  FloatPanels activation_gradients_;  // [examples, features]
  std::vector<float> square_sums_;    // [strips, features]: of the decoder's weights
  std::vector<float> norms_;          // [features, padded]
  std::vector<float> penalties_;      // L1 gradient of each feature's activation
  std::vector<float> shrink_;         // L1 gradient of each decoder column, per unit of its weights
  std::vector<float> activation_sums_, bias_gradients_;
};

}  // namespace tapline::dictionaries
