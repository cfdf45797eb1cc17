#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/memory.h"
#include "napi/engine_handle.h"
#include "napi/experiments/forward.h"
#include "napi/handle.h"
#include "napi/objects.h"
#include "napi/plan_args.h"

namespace tapline {

namespace {

constexpr std::array kRoutes{"chat",     "completion", "native-completion", "infill",     "rerank",
                             "metrics",  "slots",      "adapters",          "properties", "embeddings",
                             "tokenize", "detokenize", "apply-template"};

using Shared = std::shared_ptr<EngineHandle>;

/// JavaScript's handle of the serving engine; src/native/engine.ts adds types and request handling.
struct EngineKind {
  using Held = EngineHandle;
  static constexpr napi_type_tag kTag = {0x7461706c696e6501, 0x656e67696e650001};
  static constexpr const char* kWhat = "engine";
  static constexpr const char* kOrigin = "An Engine comes from openEngine().";
  static constexpr auto kConstructor = &AddonData::engine_class;

  static Napi::Value describe(EngineHandle& handle, Napi::Env env) {
    return Napi::String::New(env, handle.engine().info());
  }

  /// Resolves when threads, requests and model are gone. A second call resolves immediately.
  static Napi::Value close(const Call& call, Shared& held) {
    if (!held) return start(call, [] {});
    const auto handle = held;
    const Napi::Promise closing = handle->run(
        call.env, [handle] { handle->engine().close(); },
        [handle](Napi::Env env) -> Napi::Value {
          handle->release(env);
          return env.Undefined();
        });
    held.reset();  // only now: if no thread could be started, it may be closed again
    return closing;
  }
};

using EngineObject = HandleObject<EngineKind>;

EngineOptions engine_options(const Napi::Object& object) {
  EngineOptions options;
  read_fields(object, "path", options.path, "id", options.id, "draft", options.draft, "chatTemplate",
              options.chat_template, "gpuLayers", options.gpu_layers, "mmap", options.mmap, "ctxSize",
              options.ctx_size, "parallel", options.parallel, "threads", options.threads, "batch",
              options.batch, "cacheRamMiB", options.cache_ram_mib, "embeddings", options.embeddings,
              "thinking", options.thinking, "captureTokens", options.capture_tokens, "edits", options.edits,
              "twin", options.twin, "requestThreads", options.request_threads, "mmproj", options.mmproj,
              "cacheTypeK", options.cache_type_k, "cacheTypeV", options.cache_type_v, "flashAttention",
              options.flash_attention, "pooling", options.pooling, "ropeScaling", options.rope_scaling,
              "ropeScale", options.rope_scale, "ropeFreqBase", options.rope_freq_base, "yarnOriginalCtx",
              options.yarn_original_ctx, "splitMode", options.split_mode, "tensorSplit", options.tensor_split,
              "mainGpu", options.main_gpu, "cpuMoe", options.cpu_moe);
  each_object(object.Get("loras"), "loras", [&](const Napi::Object& adapter) {
    options.loras.emplace_back(field<std::string>(adapter, "path"), field(adapter, "scale", 1.0F));
  });
  return options;
}

Napi::Value estimate_memory_of(const Call& call) {
  return start(
      call, [options = engine_options(call.options)] { return estimate_memory(options); },
      [](Napi::Env env, const std::vector<DeviceMemory>& devices) {
        return array_of(env, devices, [&](const DeviceMemory& device) {
          return object_of(env, "name", device.name, "host", device.host, "free", device.free, "total",
                           device.total, "weights", device.weights, "context", device.context, "compute",
                           device.compute);
        });
      });
}

/// options.onProgress(stage, fraction), options.onFailure(sentence).
Napi::Value open_engine(const Call& call) {
  const Napi::Env env = call.env;
  const auto function = [&](const char* name) {
    const Napi::Value value = call.options.Get(name);
    return value.IsFunction() ? value.As<Napi::Function>()
                              : Napi::Function::New(env, [](const Napi::CallbackInfo&) {});
  };
  const EngineOptions options = engine_options(call.options);
  if (env.IsExceptionPending()) return {};
  const auto handle = EngineHandle::create(env, options, function("onFailure"), function("onProgress"));
  try {
    return handle->run(
        env,
        [handle] {
          try {
            handle->engine().load(
                [handle](const std::string& stage, double fraction) { handle->report(stage, fraction); });
          } catch (...) {
            handle->engine().close();
            throw;
          }
        },
        [handle](Napi::Env js) -> Napi::Value { return EngineObject::wrap(js, handle); },
        EngineHandle::AfterFailure::kRelease);
  } catch (...) {
    handle->release(env);
    throw;
  }
}

/// open(route, body, live?): the id of a new request.
Napi::Value open(const Shared& handle, const Call& call) {
  std::string body;
  const auto route = named<Route>(call.info[0], "a route", kRoutes);
  read_value(call.info[1], "a body", body);
  return to_js(call.env, handle->engine().open(route, std::move(body), live_plan(call.info[2])));
}

RequestId id_of(const Call& call) {
  return static_cast<RequestId>(call.info[0].ToNumber().Int64Value());
}

Napi::Value read(const Shared& handle, const Call& call) {
  return handle->read(call.env, id_of(call));
}

Napi::Value cancel(const Shared& handle, const Call& call) {
  handle->engine().cancel(id_of(call));
  return call.env.Undefined();
}

/// On the environment's own threads, which wait for work: a new one would start late on a busy machine.
Napi::Value capture(const Shared& handle, const Call& call) {
  CaptureRequest request;
  read_fields(call.options, "prompt", request.prompt, "layers", request.layers, "maxTokens",
              request.max_tokens, "nextTop", request.next_top);
  request.state =
      name_field(call.options, "state", std::array{"none", "last", "mean"}, std::optional(request.state));
  return start(
      call,
      [handle, request](const CancelToken& cancel) { return handle->engine().capture(request, cancel); },
      [](Napi::Env env, const CaptureResult& result) {
        size_t at = 0;
        const auto write_layer = [&](const LayerStates& layer) {
          Napi::Object object = object_of(env, "layer", layer.layer, "norms", layer.norms);
          if (at < result.states.size()) object.Set("state", to_js(env, result.states[at]));
          if (at < result.excluded.size()) object.Set("excluded", to_js(env, result.excluded[at]));
          ++at;
          return object;
        };
        return object_of(env, "tokenIds", result.tokens, "pieces", result.pieces, "layers",
                         array_of(env, result.layers, write_layer), "nextIds", result.next.ids,
                         "nextProbabilities", result.next.probabilities, "nextPieces", result.next_pieces,
                         "waitedMs", result.waited_ms, "forwardMs", result.forward_ms);
      });
}

Napi::Value score(const Shared& handle, const Call& call) {
  ScoreRequest request;
  read_fields(call.options, "tokens", request.tokens, "top", request.top);
  request.edits = edit_plan(call.options.Get("edits"));
  return start(
      call, [handle, request](const CancelToken& cancel) { return handle->engine().score(request, cancel); },
      [](Napi::Env env, const ScoreResult& result) {
        return object_of(env, "logProbabilities", result.log_probabilities, "top", result.top, "topIds",
                         result.top_ids, "topLogProbabilities", result.top_log_probabilities, "ids",
                         result.ids, "pieces", array_of(env, result.pieces, [&](const std::string& piece) {
                           return Napi::Buffer<char>::Copy(env, piece.data(), piece.size());
                         }));
      });
}

Napi::Value forward(const Shared& handle, const Call& call) {
  ServedForwardRequest request{forward_request(call.options), {}, true};
  read_fields(call.options, "addSpecial", request.add_special);
  each_object(call.options.Get("sequences"), "sequences", [&](const Napi::Object& given) {
    request.texts.emplace_back();
    if (absent(given.Get("tokens"))) read_fields(given, "text", request.texts.back());
  });
  return start(
      call,
      [handle, request = std::move(request)](const CancelToken& cancel) mutable {
        return handle->engine().forward(std::move(request), cancel);
      },
      [](Napi::Env env, ServedForwardResult& result) -> Napi::Value {
        Napi::Object out = to_js(env, result.forward);
        const auto tokens_to_js = [&](const std::vector<llama_token>& tokens) { return to_js(env, tokens); };
        set_fields(out, "tokens", array_of(env, result.tokens, tokens_to_js), "waitedMs", result.waited_ms,
                   "forwardMs", result.forward_ms);
        return out;
      });
}

/// The comparisons of the twin, undefined without one.
Napi::Value twin(const Shared& handle, const Call& call) {
  const std::optional<TwinReport> report = handle->engine().twin();
  if (!report) return call.env.Undefined();
  const auto counts = [&](const TwinCount& count) {
    return object_of(call.env, "rows", count.rows, "beside", count.with_edits, "different", count.different);
  };
  return object_of(call.env, "batches", report->batches, "plain", counts(report->plain), "neutral",
                   counts(report->neutral), "edited", counts(report->edited), "lost", report->lost, "first",
                   report->first);
}

}  // namespace

void define_engine(Napi::Env env, Napi::Object exports) {
  EngineObject::define_class(env, "Engine",
                             {
                                 EngineObject::or_undefined<open>("open"),
                                 EngineObject::while_open<read>("read"),
                                 EngineObject::or_undefined<cancel>("cancel"),
                                 EngineObject::while_open<capture>("capture"),
                                 EngineObject::while_open<score>("score"),
                                 EngineObject::while_open<forward>("forward"),
                                 EngineObject::or_undefined<twin>("twin"),
                             });
  define<open_engine>(exports, "openEngine");
  define<estimate_memory_of>(exports, "estimateMemory");
}

}  // namespace tapline
