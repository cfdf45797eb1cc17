#pragma once

#include <memory>

#include "experiment/passes.h"
#include "napi/handle.h"

namespace tapline {

/// JavaScript's handle of an experiment context.
class ContextObject : public HandleObject<ContextObject, Passes> {
 public:
  static constexpr napi_type_tag kTag = {0x7461706c696e6502, 0x636f6e7465787401};
  static constexpr const char* kWhat = "context";
  static constexpr const char* kOrigin = "A Context comes from Model.createContext().";
  static constexpr auto kConstructor = &AddonData::context_class;

  static void define(Napi::Env env);
  explicit ContextObject(const Napi::CallbackInfo& info);

  /// Creates a context on a worker thread: a promise of the JavaScript object.
  static Napi::Value create(Napi::Env env, std::shared_ptr<Model> model, const Napi::Object& options);

 private:
  Napi::Value advance(const Napi::CallbackInfo& info);
  Napi::Value features(const Napi::CallbackInfo& info);
  Napi::Value sweep(const Napi::CallbackInfo& info);
  Napi::Value patch_sweep(const Napi::CallbackInfo& info);
  Napi::Value embedding_input(const Napi::CallbackInfo& info);
  Napi::Value explain(const Napi::CallbackInfo& info);
  Napi::Value logit_direction(const Napi::CallbackInfo& info);
  Napi::Value lens_logits(const Napi::CallbackInfo& info);
  Napi::Value read_lens(const Napi::CallbackInfo& info);
  Napi::Value reset(const Napi::CallbackInfo& info);
};

}  // namespace tapline
