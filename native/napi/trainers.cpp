#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dictionaries/sparse_autoencoder.h"
#include "napi/objects.h"
#include "numbers/kernels.h"
#include "numbers/product_rate.h"
#include "probes/probe.h"

namespace tapline {

namespace {

using dictionaries::SaeFeature;
using dictionaries::SaeOptions;
using dictionaries::SaeResult;
using dictionaries::SaeWeights;
using probes::ProbeFigures;
using probes::ProbeOptions;
using probes::ProbeResult;

/// Owned copies of a data set; TypeScript has checked shapes, and prepare() checks them again.
struct DataSet {
  std::vector<float> features;
  std::vector<uint8_t> train;
  int hidden = 0;

  explicit DataSet(const Napi::Object& options) {
    read_fields(options, "features", features, "train", train, "hidden", hidden);
  }

  Examples prepare() const {
    if (hidden < 1 || train.empty() || features.size() != train.size() * static_cast<size_t>(hidden))
      throw_error(ErrorCode::kInvalidArgument, features.size(), " activations do not make ", train.size(),
                  " rows of ", hidden, ".");
    return {features.data(), static_cast<int>(train.size()), hidden, train};
  }
};

void set_figures(const ProbeFigures& figures, Napi::Object out) {
  set_fields(out, "accuracy", figures.accuracy, "auc", figures.auc, "brier", figures.brier,
             "majorityAccuracy", figures.majority_accuracy, "shuffledLabelAccuracy",
             figures.shuffled_label_accuracy, "permutedAccuracies", figures.permuted_accuracies,
             "permutedAucs", figures.permuted_aucs, "trainSize", figures.train_size, "testSize",
             figures.test_size);
}

Napi::Object write_probe(Napi::Env env, const ProbeResult& probe) {
  Napi::Object out = object_of(env, "weight", probe.weight, "bias", probe.bias, "mean", probe.mean, "std",
                               probe.std, "scores", probe.scores, "converged", probe.converged, "iterations",
                               probe.iterations, "gradientNorm", probe.gradient_norm);
  set_figures(probe.by_example, out);
  if (probe.by_group) {
    Napi::Object groups = Napi::Object::New(env);
    set_figures(*probe.by_group, groups);
    out.Set("groups", groups);
  }
  return out;
}

Napi::Value train_probe(const Call& call) {
  ProbeOptions options;
  std::vector<uint8_t> labels;
  read_fields(call.options, "labels", labels, "seed", options.seed, "c", options.logistic.c, "tolerance",
              options.logistic.tolerance, "control", options.control, "permutations", options.permutations,
              "groups", options.groups, "threads", options.threads);
  return start(
      call,
      [data = DataSet(call.options), labels, options](const CancelToken& cancel, Progress& progress) {
        const Examples examples = data.prepare();
        if (labels.size() != data.train.size())
          throw_error(ErrorCode::kInvalidArgument, labels.size(), " labels were given for ",
                      data.train.size(), " examples.");
        if (!(options.logistic.c > 0) || !(options.logistic.tolerance > 0))
          throw Error(ErrorCode::kInvalidArgument,
                      "The inverse regularisation strength and the tolerance must be positive.");
        return probes::train_probe(examples, labels, options, cancel, progress.counter());
      },
      write_probe);
}

Napi::Object write_weights(Napi::Env env, const SaeWeights& weights) {
  return object_of(env, "encoderWeight", weights.encoder_weight, "encoderBias", weights.encoder_bias,
                   "decoderWeight", weights.decoder_weight, "decoderBias", weights.decoder_bias);
}

SaeOptions sae_options(const Napi::Object& object) {
  SaeOptions options;
  read_fields(object, "nFeatures", options.features, "steps", options.steps, "seed", options.seed, "l1",
              options.l1, "learningRate", options.learning_rate, "epsilon", options.epsilon,
              "foldDecoderNorms", options.fold_decoder_norms, "lossEvery", options.loss_every, "threads",
              options.threads);
  object_field(object, "init", [&](const Napi::Object& init) {
    SaeWeights& weights = options.init.emplace();
    read_fields(init, "encoderWeight", weights.encoder_weight, "encoderBias", weights.encoder_bias,
                "decoderWeight", weights.decoder_weight, "decoderBias", weights.decoder_bias);
  });
  return options;
}

void check_sae_options(const SaeOptions& options, int hidden) {
  if (options.features < 1 || options.steps < 0 || options.loss_every < 1 || !(options.epsilon > 0))
    throw Error(ErrorCode::kInvalidArgument,
                "A sparse autoencoder needs at least one feature, at least 0 steps, a positive loss interval "
                "and a positive epsilon.");
  if (hidden < 1)
    throw Error(ErrorCode::kInvalidArgument, "A sparse autoencoder needs at least one dimension.");
  if (!options.init) return;
  const auto features = static_cast<size_t>(options.features);
  const auto dimensions = static_cast<size_t>(hidden);
  if (options.init->encoder_weight.size() != features * dimensions ||
      options.init->decoder_weight.size() != features * dimensions ||
      options.init->encoder_bias.size() != features || options.init->decoder_bias.size() != dimensions)
    throw_error(ErrorCode::kInvalidArgument, "The initial weights do not fit ", features, " features and ",
                hidden, " dimensions.");
}

Napi::Object write_sae(Napi::Env env, const SaeResult& sae) {
  const auto write_loss = [&](const auto& loss) {
    return object_of(env, "step", loss.first, "loss", loss.second);
  };
  const auto write_example = [&](const auto& example) {
    return object_of(env, "row", example.first, "activation", example.second);
  };
  const auto write_feature = [&](const SaeFeature& feature) {
    return object_of(env, "feature", feature.feature, "mean", feature.mean, "frequency", feature.frequency,
                     "examples", array_of(env, feature.examples, write_example));
  };
  const auto features = static_cast<double>(sae.weights.encoder_bias.size());
  return object_of(env, "weights", write_weights(env, sae.weights), "mean", sae.mean, "scale", sae.scale,
                   "losses", array_of(env, sae.losses, write_loss), "heldOutMse", sae.held_out_mse,
                   "trainMse", sae.train_mse, "explainedVariance", sae.explained_variance, "meanActive",
                   sae.mean_active, "deadFeatures", sae.dead_features, "deadFraction",
                   sae.dead_features / features, "features", array_of(env, sae.features, write_feature),
                   "trainSize", sae.train_size, "testSize", sae.test_size, "seconds", sae.seconds);
}

Napi::Value train_sae(const Call& call) {
  return start(
      call,
      [data = DataSet(call.options), options = sae_options(call.options)](const CancelToken& cancel,
                                                                          Progress& progress) {
        const Examples examples = data.prepare();
        check_sae_options(options, examples.hidden);
        return dictionaries::train_sae(examples, options, cancel, progress.counter());
      },
      write_sae);
}

Napi::Value initial_sae_weights(const Call& call) {
  return start(
      call,
      [hidden = field(call.options, "hidden", 0), options = sae_options(call.options)] {
        check_sae_options(options, hidden);
        return dictionaries::initial_sae_weights(hidden, options);
      },
      write_weights);
}

Napi::Value product_rate(const Call& call) {
  return start(call, [threads = std::max(1, field(call.options, "threads", 1)),
                      seconds = field(call.options, "seconds", 0.2)] {
    return tapline::product_rate(threads, seconds);
  });
}

Napi::Value train_kernels(const Call& call) {
  return to_js(call.env, best_kernels().name);
}

}  // namespace

void define_trainers(Napi::Object exports) {
  define<train_probe>(exports, "trainProbe");
  define<train_sae>(exports, "trainSae");
  define<initial_sae_weights>(exports, "initialSaeWeights");
  define<product_rate>(exports, "productRate");
  define<train_kernels>(exports, "trainKernels");
}

}  // namespace tapline
