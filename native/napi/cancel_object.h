#pragma once

#include "base/cancel.h"
#include "napi/addon_data.h"
#include "napi/setup.h"

namespace tapline {

/// `new CancelToken()` in JavaScript: passed to an operation, cancelled by `cancel()`.
class CancelObject : public Napi::ObjectWrap<CancelObject> {
 public:
  static void define(Napi::Env env, Napi::Object exports) {
    const Napi::Function constructor =
        DefineClass(env, "CancelToken", {InstanceMethod("cancel", &CancelObject::cancel)});
    AddonData::of(env).cancel_token_class = Napi::Persistent(constructor);
    exports.Set("CancelToken", constructor);
  }
  explicit CancelObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {}

  /// The token in `value`; if `value` is something else, a new one that is never cancelled.
  static CancelToken from(const Napi::Value& value) {
    if (!value.IsObject()) return {};
    const Napi::Object object = value.As<Napi::Object>();
    if (!object.InstanceOf(AddonData::of(value.Env()).cancel_token_class.Value())) return {};
    CancelObject* self = Unwrap(object);
    return self != nullptr ? self->token_ : CancelToken();
  }

 private:
  void cancel(const Napi::CallbackInfo&) { token_.cancel(); }
  CancelToken token_;
};

}  // namespace tapline
