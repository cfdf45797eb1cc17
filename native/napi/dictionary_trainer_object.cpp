#include <array>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "dictionaries/dictionary_trainer.h"
#include "dictionaries/row_stream.h"
#include "napi/handle.h"
#include "napi/objects.h"

namespace tapline {

namespace {

using dictionaries::Architecture;
using dictionaries::DictionaryEvaluation;
using dictionaries::DictionaryOptions;
using dictionaries::DictionaryTrainer;
using dictionaries::NamedNumbers;
using dictionaries::NumberType;
using dictionaries::RowPiece;
using dictionaries::RowStream;
using dictionaries::StrongRow;

/// A trainer, which one operation at a time uses.
struct SharedTrainer {
  std::mutex busy;
  DictionaryTrainer trainer;
};

using Shared = std::shared_ptr<SharedTrainer>;

/// JavaScript's handle of a dictionary in training.
struct TrainerKind : HandleKind {
  using Held = SharedTrainer;
  static constexpr napi_type_tag kTag = {0x7461706c696e6505, 0x747261696e657201};
  static constexpr const char* kWhat = "trainer";
  static constexpr const char* kOrigin = "A trainer comes from openDictionaryTrainer().";
  static constexpr auto kConstructor = &AddonData::dictionary_trainer_class;

  static Napi::Value describe(const SharedTrainer& shared, Napi::Env env) {
    const dictionaries::RowSource& rows = shared.trainer.rows();
    return object_of(env, "trainRows", rows.train_rows(), "heldOutRows", rows.held_out_rows());
  }
};

using TrainerObject = HandleObject<TrainerKind>;

constexpr int kMostNumbers = 1 << 20;

DictionaryOptions dictionary_options(const Napi::Object& object) {
  DictionaryOptions options;
  options.initial_norm = 0;
  read_fields(object, "hidden", options.shape.hidden, "features", options.shape.features, "k",
              options.shape.k, "bandwidth", options.shape.bandwidth, "steps", options.steps, "batch",
              options.batch, "seed", options.seed, "learningRate", options.learning_rate, "warmup",
              options.warmup, "decay", options.decay, "sparsity", options.sparsity, "sparsityWarmup",
              options.sparsity_warmup, "epsilon", options.epsilon, "initialNorm", options.initial_norm,
              "initialThreshold", options.initial_threshold, "deadAfter", options.dead_after, "auxK",
              options.aux_k, "auxWeight", options.aux_weight, "heldOut", options.held_out, "threads",
              options.threads, "transcodes", options.shape.transcodes, "skip", options.shape.skip);
  options.shape.architecture =
      name_field<Architecture>(object, "architecture", std::array{"relu", "topk", "batchtopk", "jumprelu"});
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
                     (!shape.skip || shape.transcodes) &&
                     (!jumps || (shape.bandwidth > 0 && options.initial_threshold > 0)) &&
                     options.initial_norm > 0 && options.learning_rate > 0 && options.epsilon > 0;
  if (sound) return;
  throw_error(ErrorCode::kInvalidArgument, "A dictionary of ", shape.features, " features of ", shape.hidden,
              " values, k ", shape.k, ", batches of ", options.batch, " and ", options.held_out,
              " held-out rows cannot be trained with these settings.");
}

Napi::Value open_trainer(const Call& call) {
  const DictionaryOptions options = dictionary_options(call.options);
  std::vector<RowPiece> pieces;
  each_object(call.options.Get("pieces"), "pieces", [&](const Napi::Object& given) {
    RowPiece& piece = pieces.emplace_back();
    piece.offset = -1;
    read_fields(given, "path", piece.path, "offset", piece.offset, "uses", piece.uses);
    if (options.shape.transcodes) {
      piece.target_offset = -1;  // lies in no file
      read_fields(given, "targetOffset", *piece.target_offset);
    }
    piece.type = name_field<NumberType>(given, "type", std::array{"f32", "f16", "bf16"});
  });
  NamedNumbers state;
  object_field(call.options, "state", [&](const Napi::Object& given) {
    const Napi::Array names = given.GetPropertyNames();
    for (uint32_t i = 0; i < names.Length(); ++i) {
      const std::string name = names.Get(i).As<Napi::String>().Utf8Value();
      state.emplace_back(name, field<std::vector<float>>(given, name.c_str()));
    }
  });
  return start(
      call,
      [options, pieces = std::move(pieces), state = std::move(state)](const CancelToken& cancel) mutable {
        check(options);
        auto rows = std::make_unique<RowStream>(std::move(pieces), options.shape.hidden, options.seed);
        Shared shared(new SharedTrainer{{}, {std::move(rows), options, cancel}});
        if (state.empty()) {
          shared->trainer.initialise();
        } else {
          shared->trainer.model().restore(state);
        }
        return shared;
      },
      TrainerObject::wrap);
}

/// Starts found = compute(trainer, cancel, progress), which has the trainer to itself.
template <class Compute, class Write>
Napi::Value start_on(const Shared& shared, const Call& call, Compute compute, Write write) {
  return start(
      call,
      [shared, compute](const CancelToken& cancel, Progress& progress) {
        const std::lock_guard<std::mutex> lock(shared->busy);
        return compute(shared->trainer, cancel, progress);
      },
      write);
}

Napi::Value run(const Shared& shared, const Call& call) {
  const auto compute = [steps = field<int64_t>(call.options, "steps")](
                           DictionaryTrainer& trainer, const CancelToken& cancel, Progress& progress) {
    const dictionaries::SparseFigures figures = trainer.run(steps, cancel, progress.counter());
    return std::pair(figures, trainer.steps_done());
  };
  return start_on(shared, call, compute, [](Napi::Env env, const auto& found) {
    return object_of(env, "stepsDone", found.second, "mse", found.first.square_error, "active",
                     found.first.active, "dead", found.first.dead);
  });
}

std::vector<float> floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

Napi::Value evaluate(const Shared& shared, const Call& call) {
  return start_on(
      shared, call,
      [](DictionaryTrainer& trainer, const CancelToken& cancel, Progress&) {
        return trainer.evaluate(cancel);
      },
      [](Napi::Env env, const DictionaryEvaluation& found) {
        return object_of(env, "rows", found.rows, "mse", found.mse, "explainedVariance",
                         found.explained_variance, "active", found.active, "dead", found.dead, "frequency",
                         floats(found.frequency), "mean", floats(found.mean));
      });
}

Napi::Value train_error(const Shared& shared, const Call& call) {
  return start_on(
      shared, call,
      [](DictionaryTrainer& trainer, const CancelToken& cancel, Progress&) {
        return trainer.evaluate_training_rows(cancel);
      },
      [](Napi::Env env, const DictionaryEvaluation& found) {
        return object_of(env, "rows", found.rows, "mse", found.mse);
      });
}

Napi::Value strongest(const Shared& shared, const Call& call) {
  return start_on(
      shared, call,
      [features = field<std::vector<int32_t>>(call.options, "features"),
       count = std::max(0, field(call.options, "count", 0))](DictionaryTrainer& trainer,
                                                             const CancelToken& cancel, Progress&) {
        return trainer.strongest(features, static_cast<size_t>(count), cancel);
      },
      [](Napi::Env env, const std::vector<std::vector<StrongRow>>& found) {
        return array_of(env, found, [&](const std::vector<StrongRow>& rows) {
          return array_of(env, rows, [&](const StrongRow& row) {
            return object_of(env, "piece", row.place.piece, "row", row.place.row, "activation",
                             row.activation);
          });
        });
      });
}

Napi::Value weights(const Shared& shared, const Call& call) {
  return start_on(
      shared, call,
      [](DictionaryTrainer& trainer, const CancelToken&, Progress&) { return trainer.weights(); },
      [shared](Napi::Env env, dictionaries::DictionaryWeights& weights) {
        Napi::Object out = object_of(
            env, "encoder", hand_over(env, std::move(weights.encoder)), "encoderBias", weights.encoder_bias,
            "decoder", hand_over(env, std::move(weights.decoder)), "decoderBias", weights.decoder_bias,
            "mean", shared->trainer.mean(), "scale", shared->trainer.scale());
        set_nonempty(out, "threshold", weights.thresholds);
        if (shared->trainer.options().shape.transcodes) {
          const dictionaries::RowScale& target = shared->trainer.target_scale();
          set_fields(out, "targetMean", target.mean, "targetScale", target.scale);
        }
        if (!weights.skip.empty()) out.Set("skip", hand_over(env, std::move(weights.skip)));
        return out;
      });
}

Napi::Value state(const Shared& shared, const Call& call) {
  return start_on(
      shared, call,
      [](DictionaryTrainer& trainer, const CancelToken&, Progress&) { return trainer.model().state(); },
      [](Napi::Env env, NamedNumbers& state) {
        Napi::Object out = Napi::Object::New(env);
        for (auto& [name, numbers] : state) out.Set(name, hand_over(env, std::move(numbers)));
        return out;
      });
}

}  // namespace

void define_dictionary_trainer(Napi::Env env, Napi::Object exports) {
  TrainerObject::define_class(env, "DictionaryTrainer",
                              {
                                  TrainerObject::while_open<run>("run"),
                                  TrainerObject::while_open<evaluate>("evaluate"),
                                  TrainerObject::while_open<train_error>("trainError"),
                                  TrainerObject::while_open<strongest>("strongest"),
                                  TrainerObject::while_open<weights>("weights"),
                                  TrainerObject::while_open<state>("state"),
                              });
  define<open_trainer>(exports, "openDictionaryTrainer");
}

}  // namespace tapline
