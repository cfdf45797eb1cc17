#pragma once

#include <memory>

#include "model/model.h"
#include "napi/handle.h"

namespace tapline {

/// JavaScript's handle of a loaded model. close() only drops this handle's share; src/native/model.ts makes
/// it wait for operations.
class ModelObject : public HandleObject<ModelObject, Model> {
 public:
  static constexpr napi_type_tag kTag = {0x7461706c696e6501, 0x6d6f64656c000001};
  static constexpr const char* kWhat = "model";
  static constexpr const char* kOrigin = "A Model comes from openModel().";
  static constexpr auto kConstructor = &AddonData::model_class;

  static void define(Napi::Env env, Napi::Object exports);
  explicit ModelObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value tokenize(const Napi::CallbackInfo& info);
  Napi::Value pieces(const Napi::CallbackInfo& info);
  Napi::Value detokenize(const Napi::CallbackInfo& info);
  Napi::Value create_context(const Napi::CallbackInfo& info);
};

}  // namespace tapline
