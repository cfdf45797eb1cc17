#include "napi/trainers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dictionaries/sparse_autoencoder.h"
#include "napi/args.h"
#include "napi/cancel_object.h"
#include "napi/results.h"
#include "napi/worker.h"
#include "numbers/kernels.h"
#include "numbers/product_rate.h"
#include "probes/probe.h"

namespace tapline {

namespace {

using dictionaries::SaeWeights;

/// Owned copies of a data set; TypeScript has checked shapes, and prepare() checks them again.
struct DataSet {
  std::vector<float> features;
  std::vector<uint8_t> train;
  int hidden = 0;

  explicit DataSet(const Napi::Object& options)
      : features(float_list(options.Get("features"))),
        train(byte_list(options.Get("train"))),
        hidden(int_field(options, "hidden", 0)) {}

  Examples prepare() const {
    if (hidden < 1 || train.empty() || features.size() != train.size() * static_cast<size_t>(hidden)) {
      throw Error(ErrorCode::kInvalidArgument, std::to_string(features.size()) + " activations do not make " +
                                                   std::to_string(train.size()) + " rows of " +
                                                   std::to_string(hidden) + ".");
    }
    Examples examples;
    examples.features = features.data();
    examples.count = static_cast<int>(train.size());
    examples.hidden = hidden;
    examples.train = train;
    return examples;
  }
};

void figures_to_js(Napi::Env env, const probes::ProbeFigures& figures, Napi::Object out) {
  out.Set("accuracy", figures.accuracy);
  out.Set("auc", figures.auc);
  out.Set("brier", figures.brier);
  out.Set("majorityAccuracy", figures.majority_accuracy);
  out.Set("shuffledLabelAccuracy", figures.shuffled_label_accuracy);
  out.Set("permutedAccuracies", to_js(env, figures.permuted_accuracies));
  out.Set("permutedAucs", to_js(env, figures.permuted_aucs));
  out.Set("trainSize", figures.train_size);
  out.Set("testSize", figures.test_size);
}

struct TrainProbe {
  DataSet data;
  std::vector<uint8_t> labels;
  probes::ProbeOptions options;
  Progress progress;
  probes::ProbeResult probe;

  void execute(const CancelToken& cancel) {
    const Examples examples = data.prepare();
    if (labels.size() != data.train.size()) {
      throw Error(ErrorCode::kInvalidArgument, std::to_string(labels.size()) + " labels were given for " +
                                                   std::to_string(data.train.size()) + " examples.");
    }
    if (!(options.logistic.c > 0) || !(options.logistic.tolerance > 0)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "The inverse regularisation strength and the tolerance are positive.");
    }
    probe = probes::train_probe(examples, labels, options, cancel, progress.counter());
  }

  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("weight", to_js(env, probe.weight));
    out.Set("bias", probe.bias);
    out.Set("mean", to_js(env, probe.mean));
    out.Set("std", to_js(env, probe.std));
    out.Set("scores", to_js(env, probe.scores));
    figures_to_js(env, probe.by_example, out);
    if (probe.by_group) {
      Napi::Object groups = Napi::Object::New(env);
      figures_to_js(env, *probe.by_group, groups);
      out.Set("groups", groups);
    }
    out.Set("converged", probe.converged);
    out.Set("iterations", probe.iterations);
    out.Set("gradientNorm", probe.gradient_norm);
    return out;
  }
};

Napi::Object weights_to_js(Napi::Env env, const SaeWeights& weights) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("encoderWeight", to_js(env, weights.encoder_weight));
  out.Set("encoderBias", to_js(env, weights.encoder_bias));
  out.Set("decoderWeight", to_js(env, weights.decoder_weight));
  out.Set("decoderBias", to_js(env, weights.decoder_bias));
  return out;
}

Napi::Object feature_to_js(Napi::Env env, const dictionaries::SaeFeature& feature) {
  Napi::Object entry = Napi::Object::New(env);
  entry.Set("feature", feature.feature);
  entry.Set("mean", feature.mean);
  entry.Set("frequency", feature.frequency);
  entry.Set("examples", array_of(env, feature.examples.size(), [&](size_t i) {
              Napi::Object example = Napi::Object::New(env);
              example.Set("row", feature.examples[i].first);
              example.Set("activation", feature.examples[i].second);
              return example;
            }));
  return entry;
}

SaeWeights weights_from_js(const Napi::Object& object) {
  return {float_list(object.Get("encoderWeight")), float_list(object.Get("encoderBias")),
          float_list(object.Get("decoderWeight")), float_list(object.Get("decoderBias"))};
}

dictionaries::SaeOptions sae_options(const Napi::Object& object) {
  dictionaries::SaeOptions options;
  options.features = int_field(object, "nFeatures", options.features);
  options.steps = int_field(object, "steps", options.steps);
  options.seed = static_cast<uint64_t>(std::max(0, int_field(object, "seed", 0)));
  if (!absent(object.Get("l1"))) options.l1 = static_cast<float>(number_field(object, "l1", 0));
  if (!absent(object.Get("learningRate")))
    options.learning_rate = static_cast<float>(number_field(object, "learningRate", 0));
  options.epsilon = static_cast<float>(number_field(object, "epsilon", options.epsilon));
  options.fold_decoder_norms = bool_field(object, "foldDecoderNorms", true);
  options.loss_every = int_field(object, "lossEvery", options.loss_every);
  options.threads = int_field(object, "threads", 0);
  object_field(object, "init", [&](const Napi::Object& init) { options.init = weights_from_js(init); });
  return options;
}

void check_sae_options(const dictionaries::SaeOptions& options, int hidden) {
  if (options.features < 1 || options.steps < 0 || options.loss_every < 1 || !(options.epsilon > 0)) {
    throw Error(ErrorCode::kInvalidArgument,
                "A sparse autoencoder needs at least one feature, no fewer than 0 steps, a positive loss "
                "interval and "
                "a positive epsilon.");
  }
  if (!options.init) return;
  const size_t weights = static_cast<size_t>(options.features) * static_cast<size_t>(hidden);
  if (options.init->encoder_weight.size() != weights || options.init->decoder_weight.size() != weights ||
      options.init->encoder_bias.size() != static_cast<size_t>(options.features) ||
      options.init->decoder_bias.size() != static_cast<size_t>(hidden)) {
    throw Error(ErrorCode::kInvalidArgument, "The initial weights do not fit " +
                                                 std::to_string(options.features) + " features and " +
                                                 std::to_string(hidden) + " dimensions.");
  }
}

struct TrainSae {
  DataSet data;
  dictionaries::SaeOptions options;
  Progress progress;
  dictionaries::SaeResult sae;

  void execute(const CancelToken& cancel) {
    const Examples examples = data.prepare();
    check_sae_options(options, examples.hidden);
    sae = dictionaries::train_sae(examples, options, cancel, progress.counter());
  }

  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("weights", weights_to_js(env, sae.weights));
    out.Set("mean", to_js(env, sae.mean));
    out.Set("scale", sae.scale);
    out.Set("losses", array_of(env, sae.losses.size(), [&](size_t i) {
              Napi::Object entry = Napi::Object::New(env);
              entry.Set("step", sae.losses[i].first);
              entry.Set("loss", sae.losses[i].second);
              return entry;
            }));
    out.Set("heldOutMse", sae.held_out_mse);
    out.Set("trainMse", sae.train_mse);
    out.Set("explainedVariance", sae.explained_variance);
    out.Set("meanActive", sae.mean_active);
    out.Set("deadFeatures", sae.dead_features);
    out.Set("deadFraction", static_cast<double>(sae.dead_features) / options.features);
    out.Set("features", array_of(env, sae.features.size(),
                                 [&](size_t i) { return feature_to_js(env, sae.features[i]); }));
    out.Set("trainSize", sae.train_size);
    out.Set("testSize", sae.test_size);
    out.Set("seconds", sae.seconds);
    return out;
  }
};

struct InitialSaeWeights {
  int hidden;
  dictionaries::SaeOptions options;
  SaeWeights weights;

  void execute(const CancelToken&) {
    check_sae_options(options, hidden);
    if (hidden < 1)
      throw Error(ErrorCode::kInvalidArgument, "A sparse autoencoder needs at least one dimension.");
    weights = dictionaries::initial_sae_weights(hidden, options);
  }
  Napi::Value result(Napi::Env env) { return weights_to_js(env, weights); }
};

struct ProductRate {
  int threads;
  double seconds;
  double rate = 0;

  void execute(const CancelToken&) { rate = tapline::product_rate(threads, seconds); }
  Napi::Value result(Napi::Env env) { return Napi::Number::New(env, rate); }
};

Napi::Value train_probe(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  TrainProbe operation{DataSet(options), byte_list(options.Get("labels")), {}, {}, {}};
  operation.options.seed = static_cast<uint64_t>(std::max(0, int_field(options, "seed", 0)));
  operation.options.logistic.c = number_field(options, "c", operation.options.logistic.c);
  operation.options.logistic.tolerance =
      number_field(options, "tolerance", operation.options.logistic.tolerance);
  operation.options.control = bool_field(options, "control", true);
  operation.options.permutations = int_field(options, "permutations", 0);
  operation.options.groups = token_list(options.Get("groups"));
  operation.options.threads = int_field(options, "threads", 0);
  operation.progress = Progress(info.Env(), options.Get("onProgress"));
  return run_async(info.Env(), std::move(operation), CancelObject::from(options.Get("cancel")));
}

Napi::Value train_sae(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  TrainSae operation{
      DataSet(options), sae_options(options), Progress(info.Env(), options.Get("onProgress")), {}};
  return run_async(info.Env(), std::move(operation), CancelObject::from(options.Get("cancel")));
}

Napi::Value initial_sae_weights(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  return run_async(info.Env(), InitialSaeWeights{int_field(options, "hidden", 0), sae_options(options), {}});
}

Napi::Value product_rate(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  return run_async(info.Env(), ProductRate{std::max(1, int_field(options, "threads", 1)),
                                           number_field(options, "seconds", 0.2)});
}

Napi::Value train_kernels(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), best_kernels().name);
}

}  // namespace

void define_trainers(Napi::Env env, Napi::Object exports) {
  exports.Set("trainProbe", Napi::Function::New<guarded_function<train_probe>>(env, "trainProbe"));
  exports.Set("trainSae", Napi::Function::New<guarded_function<train_sae>>(env, "trainSae"));
  exports.Set("initialSaeWeights",
              Napi::Function::New<guarded_function<initial_sae_weights>>(env, "initialSaeWeights"));
  exports.Set("productRate", Napi::Function::New<guarded_function<product_rate>>(env, "productRate"));
  exports.Set("trainKernels", Napi::Function::New<guarded_function<train_kernels>>(env, "trainKernels"));
}

}  // namespace tapline
