// The module table: what JavaScript finds in tapline.node. Everything else in this folder is one class or
// one rule; nothing below napi/ knows JavaScript.
#include <cstdlib>

#include "ggml-backend.h"
#include "llama.h"
#include "model/model.h"
#include "napi/addon_data.h"
#include "napi/cancel_object.h"
#include "napi/context_object.h"
#include "napi/dictionaries.h"
#include "napi/dictionary_trainer_object.h"
#include "napi/engine_handle.h"
#include "napi/engine_object.h"
#include "napi/errors.h"
#include "napi/machine.h"
#include "napi/model_object.h"
#include "napi/numbers.h"
#include "napi/results.h"
#include "napi/setup.h"
#include "napi/trainers.h"

namespace {

const char* device_kind(ggml_backend_dev_t device) {
  switch (ggml_backend_dev_type(device)) {
    case GGML_BACKEND_DEVICE_TYPE_CPU:
      return "cpu";
    case GGML_BACKEND_DEVICE_TYPE_GPU:
      return "gpu";
    case GGML_BACKEND_DEVICE_TYPE_IGPU:
      return "igpu";
    default:
      return "accelerator";
  }
}

/// What this build computes with: backend, llama.cpp's version and CPU features, devices with their memory.
Napi::Value backend_info(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  tapline::start_backends();
  const Napi::Array devices = tapline::array_of(env, ggml_backend_dev_count(), [&](size_t i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ggml_backend_dev_memory(device, &free_bytes, &total_bytes);
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("name", ggml_backend_dev_name(device));
    entry.Set("description", ggml_backend_dev_description(device));
    entry.Set("kind", device_kind(device));
    entry.Set("memoryFree", static_cast<double>(free_bytes));
    entry.Set("memoryTotal", static_cast<double>(total_bytes));
    return entry;
  });
  Napi::Object out = Napi::Object::New(env);
  out.Set("backend", TAPLINE_BACKEND);
  out.Set("llamaCpp", TAPLINE_LLAMA_CPP_VERSION);
  out.Set("systemInfo", llama_print_system_info());
  out.Set("devices", devices);
  return out;
}

/// How many there are of what has to end when it is closed, in all threads of the process: for tests.
/// `astray`: what was given back on another thread than it belongs to.
Napi::Value alive(const Napi::CallbackInfo& info) {
  Napi::Object out = Napi::Object::New(info.Env());
  const auto set_count = [&](const char* name, int64_t count) { out.Set(name, static_cast<double>(count)); };
  set_count("models", tapline::Model::alive());
  set_count("contexts", tapline::Passes::alive());
  set_count("engines", tapline::Engine::alive());
  set_count("handles", tapline::EngineHandle::alive());
  set_count("operations", tapline::Task::alive());
  set_count("kept", tapline::ReferenceGuard::alive());
  set_count("astray", tapline::ReferenceGuard::released_elsewhere());
  return out;
}

/// Gives the memory of an ArrayBuffer back now; it is of length 0 then.
Napi::Value release(const Napi::CallbackInfo& info) {
  info[0].As<Napi::ArrayBuffer>().Detach();
  return info.Env().Undefined();
}

/// Ends all that runs, for good. process.exit() runs no cleanup hooks, and no thread may outlive it.
Napi::Value end_operations(const Napi::CallbackInfo& info) {
  tapline::AddonData::of(info.Env()).operations.close();
  tapline::EngineHandle::end_all(info.Env());
  return info.Env().Undefined();
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  tapline::AddonData::attach(env);
  exports.Set("backendInfo",
              Napi::Function::New<tapline::guarded_function<backend_info>>(env, "backendInfo"));
  exports.Set("alive", Napi::Function::New<tapline::guarded_function<alive>>(env, "alive"));
  exports.Set("release", Napi::Function::New<tapline::guarded_function<release>>(env, "release"));
  exports.Set("endOperations",
              Napi::Function::New<tapline::guarded_function<end_operations>>(env, "endOperations"));
  tapline::CancelObject::define(env, exports);
  tapline::ModelObject::define(env, exports);
  tapline::ContextObject::define(env);
  tapline::define_trainers(env, exports);
  tapline::define_dictionaries(env, exports);
  tapline::DictionaryTrainerObject::define(env, exports);
  tapline::define_numbers(env, exports);
  tapline::EngineObject::define(env, exports);
  tapline::define_machine(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(tapline, init)
