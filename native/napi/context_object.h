#pragma once

#include <memory>

#include "experiment/context.h"
#include "napi/errors.h"
#include "napi/setup.h"

namespace tapline {

/// JavaScript's handle of an experiment context. Its operations hold their share of the context, so it is
/// freed when the last of them is done, never under one.
class ContextObject : public GuardedObject<ContextObject> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit ContextObject(const Napi::CallbackInfo& info);

  /// Creates a context on a worker thread: a promise of the JavaScript object.
  static Napi::Value create(Napi::Env env, std::shared_ptr<Model> model, const Napi::Value& options);

 private:
  Napi::Value advance(const Napi::CallbackInfo& info);
  Napi::Value features(const Napi::CallbackInfo& info);
  Napi::Value sweep(const Napi::CallbackInfo& info);
  Napi::Value reset(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  std::shared_ptr<Context> context_;
};

}  // namespace tapline
