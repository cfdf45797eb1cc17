#pragma once

#include <memory>

#include "model/model.h"
#include "napi/errors.h"
#include "napi/setup.h"

namespace tapline {

/// JavaScript's handle of a loaded model. Operations keep the model alive by themselves, so close() only
/// drops this handle's share; src/native/model.ts makes it wait for them.
class ModelObject : public GuardedObject<ModelObject> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit ModelObject(const Napi::CallbackInfo& info);

  /// Wraps a loaded model, on the JavaScript thread.
  static Napi::Object wrap(Napi::Env env, std::shared_ptr<Model> model);

  /// Null after close().
  const std::shared_ptr<Model>& model() const { return model_; }

 private:
  Napi::Value tokenize(const Napi::CallbackInfo& info);
  Napi::Value pieces(const Napi::CallbackInfo& info);
  Napi::Value detokenize(const Napi::CallbackInfo& info);
  Napi::Value create_context(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  std::shared_ptr<Model> model_;
};

}  // namespace tapline
