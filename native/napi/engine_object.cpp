#include "napi/engine_object.h"

#include <cstring>
#include <utility>

#include "napi/addon_data.h"
#include "napi/args.h"
#include "napi/engine_handle.h"

namespace tapline {

namespace {

constexpr napi_type_tag kEngineTag = {0x7461706c696e6501, 0x656e67696e650001};

constexpr std::pair<const char*, Route> kRoutes[] = {
    {"chat", Route::kChat},
    {"completion", Route::kCompletion},
    {"raw-completion", Route::kRawCompletion},
    {"infill", Route::kInfill},
    {"metrics", Route::kMetrics},
    {"embeddings", Route::kEmbeddings},
    {"raw-embeddings", Route::kRawEmbeddings},
    {"rerank", Route::kRerank},
    {"tokenize", Route::kTokenize},
    {"detokenize", Route::kDetokenize},
    {"apply-template", Route::kApplyTemplate},
    {"count-tokens", Route::kCountTokens},
    {"props", Route::kProps},
    {"slots", Route::kSlots},
};

EngineOptions engine_options(const Napi::Object& object) {
  EngineOptions options;
  options.path = string_field(object, "path");
  options.id = string_field(object, "id");
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
  options.request_threads = int_field(object, "requestThreads", options.request_threads);
  return options;
}

/// openEngine(options): options.onProgress(stage, fraction), options.onFailure(sentence).
Napi::Value open_engine(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object object = info[0].IsObject() ? info[0].As<Napi::Object>() : Napi::Object::New(env);
  const auto function = [&](const char* name) {
    const Napi::Value value = object.Get(name);
    return value.IsFunction() ? value.As<Napi::Function>()
                              : Napi::Function::New(env, [](const Napi::CallbackInfo&) {});
  };
  const auto handle = EngineHandle::create(env, engine_options(object), function("onFailure"));
  const auto on_progress = std::make_shared<Napi::FunctionReference>(Napi::Persistent(function("onProgress")));
  const auto progress = [handle, on_progress](const std::string& stage, double fraction) {
    handle->post([on_progress, stage, fraction](Napi::Env js) {
      if (!on_progress->IsEmpty()) on_progress->Call({Napi::String::New(js, stage), Napi::Number::New(js, fraction)});
    });
  };
  return handle->run(
      env,
      [handle, progress] {
        try {
          handle->engine().load(progress);
        } catch (...) {
          handle->engine().close();
          throw;
        }
      },
      [handle, on_progress](Napi::Env js) -> Napi::Value {
        on_progress->Reset();
        auto shared = handle;
        auto external = Napi::External<std::shared_ptr<EngineHandle>>::New(js, &shared);
        external.TypeTag(&kEngineTag);
        return AddonData::of(js).engine_class.Value().New({external});
      },
      EngineHandle::AfterFailure::kRelease);
}

}  // namespace

void EngineObject::define(Napi::Env env, Napi::Object exports) {
  const Napi::Function constructor = DefineClass(env, "Engine",
                                                 {
                                                     InstanceMethod<&EngineObject::open>("open"),
                                                     InstanceMethod<&EngineObject::read>("read"),
                                                     InstanceMethod<&EngineObject::cancel>("cancel"),
                                                     InstanceMethod<&EngineObject::close>("close"),
                                                 });
  AddonData::of(env).engine_class = Napi::Persistent(constructor);
  exports.Set("openEngine", Napi::Function::New<open_engine>(env, "openEngine"));
}

EngineObject::EngineObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<EngineObject>(info) {
  if (info.Length() != 1 || !info[0].IsExternal() ||
      !info[0].As<Napi::External<std::shared_ptr<EngineHandle>>>().CheckTypeTag(&kEngineTag)) {
    Napi::TypeError::New(info.Env(), "An Engine comes from openEngine().").ThrowAsJavaScriptException();
    return;
  }
  handle_ = *info[0].As<Napi::External<std::shared_ptr<EngineHandle>>>().Data();
  info.This().As<Napi::Object>().Set("info", handle_->engine().info());
}

/// open(route, body): the id of a new request, or undefined for an unknown route.
Napi::Value EngineObject::open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!handle_ || !info[0].IsString() || !info[1].IsString()) return env.Undefined();
  const std::string name = info[0].As<Napi::String>().Utf8Value();
  for (const auto& [route_name, route] : kRoutes) {
    if (name != route_name) continue;
    return Napi::Number::New(env, static_cast<double>(
                                      handle_->engine().open(route, info[1].As<Napi::String>().Utf8Value())));
  }
  return env.Undefined();
}

Napi::Value EngineObject::read(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!handle_) {
    const auto deferred = Napi::Promise::Deferred::New(env);
    deferred.Reject(to_js_error(env, ErrorCode::kClosed, "The engine is closed.").Value());
    return deferred.Promise();
  }
  return handle_->read(env, static_cast<RequestId>(info[0].ToNumber().Int64Value()));
}

Napi::Value EngineObject::cancel(const Napi::CallbackInfo& info) {
  if (handle_) handle_->engine().cancel(static_cast<RequestId>(info[0].ToNumber().Int64Value()));
  return info.Env().Undefined();
}

/// Resolves when threads, requests and model are gone. A second call resolves at once.
Napi::Value EngineObject::close(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!handle_) {
    const auto deferred = Napi::Promise::Deferred::New(env);
    deferred.Resolve(env.Undefined());
    return deferred.Promise();
  }
  const auto handle = std::move(handle_);
  handle_.reset();
  return handle->run(
      env, [handle] { handle->engine().close(); },
      [handle](Napi::Env js) -> Napi::Value {
        handle->release(js);
        return js.Undefined();
      });
}

}  // namespace tapline
