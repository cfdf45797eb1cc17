#pragma once

#include <memory>

#include "napi/engine_handle.h"
#include "napi/handle.h"

namespace tapline {

/// JavaScript's handle of the serving engine; src/native/engine.ts gives it its types and its manners.
///
/// Lifetime rules:
/// 1. All state that JavaScript waits on lives in EngineHandle and is touched on the JavaScript thread only;
///    engine threads reach it through one thread-safe function.
/// 2. That function keeps the process alive exactly while a promise is pending.
/// 3. When the environment goes away without close(), a cleanup hook ends the engine's threads first. The
///    hook was added after the thread-safe function, so it runs before Node takes that function down.
class EngineObject : public HandleObject<EngineObject, EngineHandle> {
 public:
  static constexpr napi_type_tag kTag = {0x7461706c696e6501, 0x656e67696e650001};
  static constexpr const char* kWhat = "engine";
  static constexpr const char* kOrigin = "An Engine comes from openEngine().";
  static constexpr auto kConstructor = &AddonData::engine_class;

  static void define(Napi::Env env, Napi::Object exports);
  explicit EngineObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value open(const Napi::CallbackInfo& info);
  Napi::Value read(const Napi::CallbackInfo& info);
  Napi::Value cancel(const Napi::CallbackInfo& info);
  Napi::Value capture(const Napi::CallbackInfo& info);
  Napi::Value score(const Napi::CallbackInfo& info);
  Napi::Value twin(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);
};

}  // namespace tapline
