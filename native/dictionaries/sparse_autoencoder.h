#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "numbers/examples.h"

namespace tapline::dictionaries {

/// f = relu(encoder_weight x + encoder_bias),  x' = decoder_weight f + decoder_bias.
struct SaeWeights {
  std::vector<float> encoder_weight;  ///< [features, hidden]
  std::vector<float> encoder_bias;    ///< [features]
  std::vector<float> decoder_weight;  ///< [hidden, features]
  std::vector<float> decoder_bias;    ///< [hidden]
};

/// The recipe of "Training Sparse Autoencoders" (Conerly, Templeton, Bricken, Marcus & Henighan, Anthropic
/// Circuits Updates, April 2024), with its objective divided by the number of dimensions so that its first
/// term is a mean squared error:
///   loss = mean((x' - x)^2) + l1 / hidden * mean over examples of  sum_i f_i |decoder column i|
/// No constraint on decoder norms: a SparseModel of kRelu. The L1 weight rises linearly over the first 5 % of
/// the steps, the learning rate falls linearly to zero over the last 20 %. Adam (0.9, 0.999) on all training
/// examples in each step.
///
/// Two defaults differ, because the source trains for 200,000 steps on billions of rows of some thousand
/// dimensions, and this for a few hundred steps on a few hundred rows of 64 to 8192. l1 is 0.11 sqrt(hidden),
/// the source's 5 at 2066 dimensions: with rows of norm sqrt(hidden), a squared error grows with hidden and
/// an activation with its root, so this keeps their balance. The learning rate is 0.06 / sqrt(hidden): unit
/// columns have entries of size 1 / sqrt(hidden), which Adam, moving each entry by about the rate, crosses in
/// some twenty steps.
struct SaeOptions {
  int features = 64;
  int steps = 100;
  uint64_t seed = 0;
  std::optional<float> l1;
  std::optional<float> learning_rate;
  float epsilon = 1e-8f;
  float initial_decoder_norm = 0.1f;  ///< random directions of this norm; the encoder starts as the transpose
  double l1_warmup = 0.05;
  double learning_rate_decay = 0.2;
  bool fold_decoder_norms = true;  ///< return decoder columns of norm 1, their norms moved into the encoder
  int loss_every = 10;
  int threads = 0;                 ///< 0: ThreadTeam::default_size()
  std::optional<SaeWeights> init;  ///< instead of random weights
};

struct SaeFeature {
  int feature = 0;
  double mean = 0;                               ///< mean activation on held-out examples
  double frequency = 0;                          ///< share of held-out examples on which it is active
  std::vector<std::pair<int, double>> examples;  ///< (row in Examples, activation), strongest first, held out
};

struct SaeResult {
  SaeWeights weights;
  std::vector<float> mean;  ///< [hidden]; activations enter as (x - mean) / scale
  float scale = 1;
  std::vector<std::pair<int, double>> losses;  ///< (updates done, loss with the full L1 weight)
  double held_out_mse = 0, train_mse = 0;      ///< per element, on normalised activations
  double explained_variance = 0;               ///< held out, as in DictionaryEvaluation
  double mean_active = 0;                      ///< features active per held-out example (L0)
  int dead_features = 0;                       ///< active on no held-out example
  std::vector<SaeFeature> features;            ///< the 16 of highest mean activation, active ones only
  int train_size = 0, test_size = 0;
  double seconds = 0;  ///< of the training steps alone
};

/// Trains on the examples marked for training and measures on the others. `progress(steps done, steps)`.
SaeResult train_sae(const Examples& examples, const SaeOptions& options, const CancelToken& cancel,
                    const std::function<void(double, double)>& progress);

/// The random weights that train_sae starts from.
SaeWeights initial_sae_weights(int hidden, const SaeOptions& options);

}  // namespace tapline::dictionaries
