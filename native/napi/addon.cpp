// The module: what JavaScript finds in tapline.node. Nothing outside napi/ knows JavaScript.
#include "base/counted_rows.h"
#include "base/narrow.h"
#include "experiment/lens.h"
#include "experiment/passes.h"
#include "ggml-backend.h"
#include "levels/levels.h"
#include "llama.h"
#include "model/dequantise.h"
#include "model/model.h"
#include "model/quantise.h"
#include "model/remote.h"
#include "napi/engine_handle.h"
#include "napi/objects.h"

namespace tapline {

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

/// The capabilities of this build: backend, llama.cpp's version and CPU features, devices with their memory.
Napi::Value backend_info(const Call& call) {
  start_backends();
  std::vector<ggml_backend_dev_t> devices(ggml_backend_dev_count());
  for (size_t i = 0; i < devices.size(); ++i) devices[i] = ggml_backend_dev_get(i);
  const auto describe = [&](ggml_backend_dev_t device) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ggml_backend_dev_memory(device, &free_bytes, &total_bytes);
    return object_of(call.env, "name", ggml_backend_dev_name(device), "description",
                     ggml_backend_dev_description(device), "kind", device_kind(device), "memoryFree",
                     free_bytes, "memoryTotal", total_bytes);
  };
  Napi::Object info =
      object_of(call.env, "backend", TAPLINE_BACKEND, "llamaCpp", TAPLINE_LLAMA_CPP_VERSION, "systemInfo",
                llama_print_system_info(), "devices", array_of(call.env, devices, describe));
  if (const char* level = processor_level()) info["level"] = level;
  return info;
}

/// Counts, in all threads of the process, the objects that must be gone once everything is closed: for tests.
/// `astray`: references that were released on a different thread from the one that they belong to.
Napi::Value alive(const Call& call) {
  return object_of(call.env, "models", Model::alive(), "contexts", Passes::alive(), "engines",
                   Engine::alive(), "handles", EngineHandle::alive(), "operations", Task::alive(),
                   "translators", LoadedTranslator::alive(), "kept", ReferenceGuard::alive(), "astray",
                   ReferenceGuard::released_elsewhere());
}

/// Frees the memory of an ArrayBuffer now; its length is 0 afterwards.
Napi::Value release(const Call& call) {
  call.info[0].As<Napi::ArrayBuffer>().Detach();
  return call.env.Undefined();
}

/// Ends all operations permanently. process.exit() runs no cleanup hooks, and no thread may outlive it.
Napi::Value end_operations(const Call& call) {
  AddonData::of(call.env).operations.close();
  EngineHandle::end_all(call.env);
  return call.env.Undefined();
}

Napi::Value connect(const Call& call) {
  std::vector<std::string> endpoints;
  read_value(call.info[0], "endpoints", endpoints);
  return start(call, [endpoints] { connect_remotes(endpoints); });
}

Napi::Value quantise_model(const Call& call) {
  const auto form =
      name_field<Quantisation>(call.options, "form", std::array{"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"});
  return start(call,
               [from = field<std::string>(call.options, "from"), to = field<std::string>(call.options, "to"),
                form, threads = field(call.options, "threads", 0)] { quantise(from, to, form, threads); });
}

Napi::Value dequantise_weight(const Call& call) {
  Weight weight;
  weight.path = field<std::string>(call.options, "from");
  weight.offset = field<double>(call.options, "offset");
  weight.type = field<int>(call.options, "type");
  weight.row = field<int64_t>(call.options, "row");
  weight.rows = field<int64_t>(call.options, "rows");
  return start(call, [weight, to = field<std::string>(call.options, "to")] { dequantise(weight, to); });
}

Napi::Value narrow_values(const Call& call) {
  const auto type = name_field<NarrowType>(call.options, "type", std::array{"f16", "bf16"});
  return start(call, [values = field<std::vector<float>>(call.options, "values"), type] {
    return narrow(values.data(), values.size(), type);
  });
}

/// On the calling thread: there are few norms.
Napi::Value counted_norms(const Call& call) {
  return to_js(call.env, counted_rows(field<std::vector<double>>(call.options, "norms"),
                                      field<size_t>(call.options, "bos")));
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  if (const std::string missing = missing_instructions(); !missing.empty()) {
    Napi::Error::New(env, "it was compiled for " + missing + ", which this processor lacks")
        .ThrowAsJavaScriptException();
    return exports;
  }
  AddonData::attach(env);
  define<backend_info>(exports, "backendInfo");
  define<alive>(exports, "alive");
  define<release>(exports, "release");
  define<end_operations>(exports, "endOperations");
  define<connect>(exports, "connectRemotes");
  define<quantise_model>(exports, "quantise");
  define<dequantise_weight>(exports, "dequantise");
  define<narrow_values>(exports, "narrow");
  define<counted_norms>(exports, "countedRows");
  CancelObject::define(env, exports);
  define_model(env, exports);
  define_context(env);
  define_trainers(exports);
  define_dictionary_trainer(env, exports);
  define_encoding(exports);
  define_engine(env, exports);
  return exports;
}

}  // namespace

}  // namespace tapline

using tapline::init;
NODE_API_MODULE(tapline, init)
