#include "napi/engine_object.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/memory.h"
#include "napi/args.h"
#include "napi/cancel_object.h"
#include "napi/live_args.h"
#include "napi/results.h"

namespace tapline {

namespace {

constexpr std::pair<const char*, Route> kRoutes[] = {
    {"chat", Route::kChat},
    {"completion", Route::kCompletion},
    {"native-completion", Route::kNativeCompletion},
    {"infill", Route::kInfill},
    {"rerank", Route::kRerank},
    {"metrics", Route::kMetrics},
    {"slots", Route::kSlots},
    {"adapters", Route::kAdapters},
    {"properties", Route::kProperties},
    {"embeddings", Route::kEmbeddings},
    {"tokenize", Route::kTokenize},
    {"detokenize", Route::kDetokenize},
    {"apply-template", Route::kApplyTemplate},
};

EngineOptions engine_options(const Napi::Object& object) {
  EngineOptions options;
  options.path = string_field(object, "path");
  options.id = string_field(object, "id");
  options.draft = string_field(object, "draft");
  options.chat_template = string_field(object, "chatTemplate");
  options.gpu_layers = int_field(object, "gpuLayers", options.gpu_layers);
  options.mmap = bool_field(object, "mmap", options.mmap);
  options.ctx_size = int_field(object, "ctxSize", options.ctx_size);
  options.parallel = int_field(object, "parallel", options.parallel);
  options.threads = int_field(object, "threads", options.threads);
  options.batch = int_field(object, "batch", options.batch);
  options.cache_ram_mib = int_field(object, "cacheRamMiB", options.cache_ram_mib);
  options.embeddings = int_field(object, "embeddings", options.embeddings);
  options.thinking = int_field(object, "thinking", options.thinking);
  options.capture_tokens = int_field(object, "captureTokens", options.capture_tokens);
  options.twin = bool_field(object, "twin", options.twin);
  options.request_threads = int_field(object, "requestThreads", options.request_threads);
  options.mmproj = string_field(object, "mmproj");
  options.cache_type_k = string_field(object, "cacheTypeK");
  options.cache_type_v = string_field(object, "cacheTypeV");
  options.flash_attention = string_field(object, "flashAttention");
  options.pooling = string_field(object, "pooling");
  options.rope_scaling = string_field(object, "ropeScaling");
  options.rope_scale = number_field(object, "ropeScale", options.rope_scale);
  options.rope_freq_base = number_field(object, "ropeFreqBase", options.rope_freq_base);
  options.yarn_original_ctx = int_field(object, "yarnOriginalCtx", options.yarn_original_ctx);
  options.split_mode = string_field(object, "splitMode");
  options.tensor_split = float_list_field(object, "tensorSplit");
  options.main_gpu = int_field(object, "mainGpu", options.main_gpu);
  options.cpu_moe = int_field(object, "cpuMoe", options.cpu_moe);
  each_object(object.Get("loras"), "loras", [&](const Napi::Object& adapter) {
    options.loras.emplace_back(string_field(adapter, "path"),
                               static_cast<float>(number_field(adapter, "scale", 1)));
  });
  return options;
}

struct EstimateMemory {
  EngineOptions options;
  std::vector<DeviceMemory> devices;

  void execute(const CancelToken&) { devices = estimate_memory(options); }
  Napi::Value result(Napi::Env env) {
    return array_of(env, devices.size(), [&](size_t i) {
      const DeviceMemory& device = devices[i];
      Napi::Object entry = Napi::Object::New(env);
      entry.Set("name", device.name);
      entry.Set("host", device.host);
      entry.Set("free", static_cast<double>(device.free));
      entry.Set("total", static_cast<double>(device.total));
      entry.Set("weights", static_cast<double>(device.weights));
      entry.Set("context", static_cast<double>(device.context));
      entry.Set("compute", static_cast<double>(device.compute));
      return entry;
    });
  }
};

/// estimateMemory(options): the options of openEngine.
Napi::Value estimate_memory_of(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), EstimateMemory{engine_options(options_of(info)), {}});
}

/// openEngine(options): options.onProgress(stage, fraction), options.onFailure(sentence).
Napi::Value open_engine(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object object = options_of(info);
  const auto function = [&](const char* name) {
    const Napi::Value value = object.Get(name);
    return value.IsFunction() ? value.As<Napi::Function>()
                              : Napi::Function::New(env, [](const Napi::CallbackInfo&) {});
  };
  const EngineOptions options = engine_options(object);
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

Napi::Value capture_object(Napi::Env env, const CaptureResult& result) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("tokenIds", to_js(env, result.tokens));
  object.Set("pieces", to_js(env, result.pieces));
  object.Set("layers", array_of(env, result.layers.size(), [&](size_t i) {
               Napi::Object layer = Napi::Object::New(env);
               layer.Set("layer", result.layers[i].layer);
               layer.Set("norms", to_js(env, result.layers[i].norms));
               if (i < result.states.size()) layer.Set("state", to_js(env, result.states[i]));
               if (i < result.excluded.size()) layer.Set("excluded", excluded_to_js(env, result.excluded[i]));
               return layer;
             }));
  object.Set("nextIds", to_js(env, result.next.ids));
  object.Set("nextProbabilities", to_js(env, result.next.probabilities));
  object.Set("nextPieces", to_js(env, result.next_pieces));
  object.Set("waitedMs", result.waited_ms);
  object.Set("forwardMs", result.forward_ms);
  return object;
}

/// On the environment's own threads, which wait for work: a fresh one would start late on a busy machine.
struct CaptureResident {
  std::shared_ptr<EngineHandle> handle;
  CaptureRequest request;
  CaptureResult captured;

  void execute(const CancelToken& cancel) { captured = handle->engine().capture(request, cancel); }
  Napi::Value result(Napi::Env env) { return capture_object(env, captured); }
};

Napi::Value scores_object(Napi::Env env, const ScoreResult& result) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("logProbabilities", to_js(env, result.log_probabilities));
  object.Set("top", result.top);
  object.Set("topIds", to_js(env, result.top_ids));
  object.Set("topLogProbabilities", to_js(env, result.top_log_probabilities));
  object.Set("ids", to_js(env, result.ids));
  object.Set("pieces", array_of(env, result.pieces.size(), [&](size_t i) {
               const std::string& piece = result.pieces[i];
               return Napi::Buffer<char>::Copy(env, piece.data(), piece.size());
             }));
  return object;
}

struct ScorePrompt {
  std::shared_ptr<EngineHandle> handle;
  ScoreRequest request;
  ScoreResult scored;

  void execute(const CancelToken& cancel) { scored = handle->engine().score(request, cancel); }
  Napi::Value result(Napi::Env env) { return scores_object(env, scored); }
};

}  // namespace

void EngineObject::define(Napi::Env env, Napi::Object exports) {
  define_class(env, "Engine",
               {
                   method_named<&EngineObject::open>("open"),
                   while_open<&EngineObject::read>("read"),
                   method_named<&EngineObject::cancel>("cancel"),
                   while_open<&EngineObject::capture>("capture"),
                   while_open<&EngineObject::score>("score"),
                   method_named<&EngineObject::twin>("twin"),
                   method_named<&EngineObject::close>("close"),
               });
  exports.Set("openEngine", Napi::Function::New<guarded_function<open_engine>>(env, "openEngine"));
  exports.Set("estimateMemory",
              Napi::Function::New<guarded_function<estimate_memory_of>>(env, "estimateMemory"));
}

EngineObject::EngineObject(const Napi::CallbackInfo& info) : HandleObject(info) {
  set_info(info, [](EngineHandle& handle, Napi::Env) { return handle.engine().info(); });
}

/// open(route, body, live?): the id of a new request, or undefined for an unknown route.
Napi::Value EngineObject::open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!held_ || !info[0].IsString() || !info[1].IsString()) return env.Undefined();
  const std::string name = info[0].As<Napi::String>().Utf8Value();
  for (const auto& [route_name, route] : kRoutes) {
    if (name != route_name) continue;
    return Napi::Number::New(env, static_cast<double>(held_->engine().open(
                                      route, info[1].As<Napi::String>().Utf8Value(), live_plan(info[2]))));
  }
  return env.Undefined();
}

/// capture({ prompt, layers, maxTokens, nextTop, state, cancel })
Napi::Value EngineObject::capture(const Napi::CallbackInfo& info) {
  const Napi::Object object = options_of(info);
  CaptureRequest request{
      string_field(object, "prompt"), int_list_field(object, "layers"), int_field(object, "maxTokens", 0),
      int_field(object, "nextTop", 0),
      name_field<CapturedState>(object, "state", std::array{"none", "last", "mean"}, CapturedState::kNone)};
  return run_async(info.Env(), CaptureResident{held_, std::move(request), {}},
                   CancelObject::from(object.Get("cancel")));
}

/// score({ tokens, top, cancel })
Napi::Value EngineObject::score(const Napi::CallbackInfo& info) {
  const Napi::Object object = options_of(info);
  ScoreRequest request{token_list(object.Get("tokens")), int_field(object, "top", 0)};
  return run_async(info.Env(), ScorePrompt{held_, std::move(request), {}},
                   CancelObject::from(object.Get("cancel")));
}

Napi::Value EngineObject::read(const Napi::CallbackInfo& info) {
  return held_->read(info.Env(), static_cast<RequestId>(info[0].ToNumber().Int64Value()));
}

Napi::Value EngineObject::cancel(const Napi::CallbackInfo& info) {
  if (held_) held_->engine().cancel(static_cast<RequestId>(info[0].ToNumber().Int64Value()));
  return info.Env().Undefined();
}

/// What the twin has seen, undefined where there is none.
Napi::Value EngineObject::twin(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::optional<TwinReport> report = held_ ? held_->engine().twin() : std::nullopt;
  if (!report) return env.Undefined();
  const auto counts = [env](const TwinCount& count) {
    Napi::Object object = Napi::Object::New(env);
    object.Set("rows", static_cast<double>(count.rows));
    object.Set("beside", static_cast<double>(count.with_edits));
    object.Set("different", static_cast<double>(count.different));
    return object;
  };
  Napi::Object object = Napi::Object::New(env);
  object.Set("batches", static_cast<double>(report->batches));
  object.Set("plain", counts(report->plain));
  object.Set("neutral", counts(report->neutral));
  object.Set("edited", counts(report->edited));
  object.Set("lost", static_cast<double>(report->lost));
  object.Set("first", report->first);
  return object;
}

/// Resolves when threads, requests and model are gone. A second call resolves at once.
Napi::Value EngineObject::close(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!held_) return run_async(env, Release<EngineHandle>{});
  const auto handle = held_;
  const Napi::Promise closing = handle->run(
      env, [handle] { handle->engine().close(); },
      [handle](Napi::Env js) -> Napi::Value {
        handle->release(js);
        return js.Undefined();
      });
  held_.reset();  // only now: where no thread could be started, it may be closed again
  return closing;
}

}  // namespace tapline
