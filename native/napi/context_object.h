#pragma once

#include <memory>

#include "napi/experiments/experiment.h"
#include "napi/handle.h"

namespace tapline {

/// JavaScript's handle of a context: its experiments, each from its own file in experiments/.
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
  template <Experiment* experiment>
  Napi::Value start(const Napi::CallbackInfo& info);
  Napi::Value reset(const Napi::CallbackInfo& info);
};

}  // namespace tapline
