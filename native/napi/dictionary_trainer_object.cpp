#include "napi/dictionary_trainer_object.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "napi/args.h"
#include "napi/cancel_object.h"
#include "napi/results.h"

namespace tapline {

namespace {

using dictionaries::Architecture;
using dictionaries::DictionaryEvaluation;
using dictionaries::DictionaryOptions;
using dictionaries::NamedNumbers;
using dictionaries::NumberType;
using dictionaries::RowPiece;
using dictionaries::RowStream;
using dictionaries::SparseFigures;
using dictionaries::StrongRow;
using Shared = std::shared_ptr<SharedTrainer>;

constexpr int kMostNumbers = 1 << 20;

/// A step count: whole, and not beyond what a double holds exactly.
int64_t count_field(const Napi::Object& object, const char* name) {
  const double value = number_field(object, name, 0);
  if (!(value >= 0 && value <= 9e15) || value != std::floor(value)) wrong_type(name, "a count");
  return static_cast<int64_t>(value);
}

float float_field(const Napi::Object& object, const char* name) {
  return static_cast<float>(number_field(object, name, 0));
}

DictionaryOptions dictionary_options(const Napi::Object& object) {
  DictionaryOptions options;
  options.shape.architecture =
      name_field<Architecture>(object, "architecture", std::array{"relu", "topk", "batchtopk", "jumprelu"});
  options.shape.hidden = int_field(object, "hidden", 0);
  options.shape.features = int_field(object, "features", 0);
  options.shape.k = int_field(object, "k", 0);
  options.shape.bandwidth = float_field(object, "bandwidth");
  options.steps = count_field(object, "steps");
  options.batch = int_field(object, "batch", 0);
  options.seed = static_cast<uint64_t>(count_field(object, "seed"));
  options.learning_rate = float_field(object, "learningRate");
  options.warmup = count_field(object, "warmup");
  options.decay = count_field(object, "decay");
  options.sparsity = float_field(object, "sparsity");
  options.sparsity_warmup = count_field(object, "sparsityWarmup");
  options.epsilon = static_cast<float>(number_field(object, "epsilon", 1e-8));
  options.initial_norm = float_field(object, "initialNorm");
  options.initial_threshold = float_field(object, "initialThreshold");
  options.dead_after = count_field(object, "deadAfter");
  options.aux_k = int_field(object, "auxK", 0);
  options.aux_weight = float_field(object, "auxWeight");
  options.held_out = int_field(object, "heldOut", 0);
  options.threads = int_field(object, "threads", 0);
  return options;
}

void check(const DictionaryOptions& options) {
  const dictionaries::SparseShape& shape = options.shape;
  const bool keeps_k =
      shape.architecture == Architecture::kTopK || shape.architecture == Architecture::kBatchTopK;
  const bool jumps = shape.architecture == Architecture::kJumpRelu;
  const bool sound = shape.hidden >= 1 && shape.hidden <= kMostNumbers && shape.features >= 1 &&
                     shape.features <= kMostNumbers && options.batch >= 1 && options.batch <= kMostNumbers &&
                     options.held_out >= 1 && options.aux_k >= 0 &&
                     (!keeps_k || (shape.k >= 1 && shape.k <= shape.features)) &&
                     (!jumps || (shape.bandwidth > 0 && options.initial_threshold > 0)) &&
                     options.initial_norm > 0 && options.learning_rate > 0 && options.epsilon > 0;
  if (sound) return;
  throw Error(ErrorCode::kInvalidArgument,
              "A dictionary of " + std::to_string(shape.features) + " features of " +
                  std::to_string(shape.hidden) + " values, k " + std::to_string(shape.k) + ", batches of " +
                  std::to_string(options.batch) + " and " + std::to_string(options.held_out) +
                  " held-out rows cannot be trained with these settings.");
}

struct OpenTrainer {
  std::vector<RowPiece> pieces;
  DictionaryOptions options;
  NamedNumbers state;
  Shared trainer;

  void execute(const CancelToken& cancel) {
    check(options);
    trainer = std::make_shared<SharedTrainer>(
        std::make_unique<RowStream>(std::move(pieces), options.shape.hidden, options.seed), options, cancel);
    if (state.empty()) {
      trainer->trainer.initialise();
    } else {
      trainer->trainer.model().restore(state);
    }
  }
  Napi::Value result(Napi::Env env) { return DictionaryTrainerObject::wrap(env, std::move(trainer)); }
};

struct Run {
  Shared shared;
  int64_t steps;
  Progress progress;
  SparseFigures figures;
  int64_t done = 0;

  void execute(const CancelToken& cancel) {
    const std::lock_guard<std::mutex> lock(shared->busy);
    figures = shared->trainer.run(steps, cancel, progress.counter());
    done = shared->trainer.steps_done();
  }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("stepsDone", static_cast<double>(done));
    out.Set("mse", figures.square_error);
    out.Set("active", figures.active);
    out.Set("dead", figures.dead);
    return out;
  }
};

Napi::Value floats_to_js(Napi::Env env, const std::vector<double>& values) {
  return to_js(env, std::vector<float>(values.begin(), values.end()));
}

struct Evaluate {
  Shared shared;
  DictionaryEvaluation found;

  void execute(const CancelToken& cancel) {
    const std::lock_guard<std::mutex> lock(shared->busy);
    found = shared->trainer.evaluate(cancel);
  }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("rows", found.rows);
    out.Set("mse", found.mse);
    out.Set("explainedVariance", found.explained_variance);
    out.Set("active", found.active);
    out.Set("dead", found.dead);
    out.Set("frequency", floats_to_js(env, found.frequency));
    out.Set("mean", floats_to_js(env, found.mean));
    return out;
  }
};

struct Strongest {
  Shared shared;
  std::vector<int32_t> features;
  int count;
  std::vector<std::vector<StrongRow>> found;

  void execute(const CancelToken& cancel) {
    const std::lock_guard<std::mutex> lock(shared->busy);
    found = shared->trainer.strongest(features, static_cast<size_t>(std::max(0, count)), cancel);
  }
  Napi::Value result(Napi::Env env) {
    return array_of(env, found.size(), [&](size_t i) {
      return array_of(env, found[i].size(), [&](size_t j) {
        Napi::Object row = Napi::Object::New(env);
        row.Set("piece", found[i][j].place.piece);
        row.Set("row", static_cast<double>(found[i][j].place.row));
        row.Set("activation", found[i][j].activation);
        return row;
      });
    });
  }
};

struct TrainError {
  Shared shared;
  DictionaryEvaluation found;

  void execute(const CancelToken& cancel) {
    const std::lock_guard<std::mutex> lock(shared->busy);
    found = shared->trainer.evaluate_training_rows(cancel);
  }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("rows", found.rows);
    out.Set("mse", found.mse);
    return out;
  }
};

struct TakeWeights {
  Shared shared;
  dictionaries::DictionaryWeights weights;

  void execute(const CancelToken&) {
    const std::lock_guard<std::mutex> lock(shared->busy);
    weights = shared->trainer.weights();
  }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("encoder", hand_over(env, std::move(weights.encoder)));
    out.Set("encoderBias", to_js(env, weights.encoder_bias));
    out.Set("decoder", hand_over(env, std::move(weights.decoder)));
    out.Set("decoderBias", to_js(env, weights.decoder_bias));
    if (!weights.thresholds.empty()) out.Set("threshold", to_js(env, weights.thresholds));
    out.Set("mean", to_js(env, shared->trainer.mean()));
    out.Set("scale", shared->trainer.scale());
    return out;
  }
};

struct TakeState {
  Shared shared;
  NamedNumbers state;

  void execute(const CancelToken&) {
    const std::lock_guard<std::mutex> lock(shared->busy);
    state = shared->trainer.model().state();
  }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    for (auto& [name, numbers] : state) out.Set(name, hand_over(env, std::move(numbers)));
    return out;
  }
};

Napi::Object describe(const SharedTrainer& shared, Napi::Env env) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("trainRows", static_cast<double>(shared.trainer.rows().train_rows()));
  out.Set("heldOutRows", static_cast<double>(shared.trainer.rows().held_out_rows()));
  return out;
}

Napi::Value open_trainer(const Napi::CallbackInfo& info) {
  const Napi::Object given = options_of(info);
  OpenTrainer operation{{}, dictionary_options(given), {}, {}};
  each_object(given.Get("pieces"), "pieces", [&](const Napi::Object& piece) {
    operation.pieces.push_back({string_field(piece, "path"), number_field(piece, "offset", -1),
                                name_field<NumberType>(piece, "type", std::array{"f32", "f16", "bf16"}),
                                byte_list(piece.Get("uses"))});
  });
  object_field(given, "state", [&](const Napi::Object& state) {
    const Napi::Array names = state.GetPropertyNames();
    for (uint32_t i = 0; i < names.Length(); ++i) {
      const std::string name = names.Get(i).As<Napi::String>().Utf8Value();
      operation.state.emplace_back(name, float_list(state.Get(name)));
    }
  });
  return run_async(info.Env(), std::move(operation), CancelObject::from(given.Get("cancel")));
}

}  // namespace

void DictionaryTrainerObject::define(Napi::Env env, Napi::Object exports) {
  define_class(env, "DictionaryTrainer",
               {while_open<&DictionaryTrainerObject::run>("run"),
                while_open<&DictionaryTrainerObject::evaluate>("evaluate"),
                while_open<&DictionaryTrainerObject::train_error>("trainError"),
                while_open<&DictionaryTrainerObject::strongest>("strongest"),
                while_open<&DictionaryTrainerObject::weights>("weights"),
                while_open<&DictionaryTrainerObject::state>("state"), closing()});
  exports.Set("openDictionaryTrainer",
              Napi::Function::New<guarded_function<open_trainer>>(env, "openDictionaryTrainer"));
}

DictionaryTrainerObject::DictionaryTrainerObject(const Napi::CallbackInfo& info) : HandleObject(info) {
  set_info(info, describe);
}

Napi::Value DictionaryTrainerObject::run(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  return run_async(
      info.Env(),
      Run{held_, count_field(options, "steps"), Progress(info.Env(), options.Get("onProgress")), {}, 0},
      CancelObject::from(options.Get("cancel")));
}

Napi::Value DictionaryTrainerObject::evaluate(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), Evaluate{held_, {}}, CancelObject::from(options_of(info).Get("cancel")));
}

Napi::Value DictionaryTrainerObject::train_error(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), TrainError{held_, {}}, CancelObject::from(options_of(info).Get("cancel")));
}

Napi::Value DictionaryTrainerObject::strongest(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  return run_async(info.Env(),
                   Strongest{held_, int_list_field(options, "features"), int_field(options, "count", 0), {}},
                   CancelObject::from(options.Get("cancel")));
}

Napi::Value DictionaryTrainerObject::weights(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), TakeWeights{held_, {}});
}

Napi::Value DictionaryTrainerObject::state(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), TakeState{held_, {}});
}

}  // namespace tapline
