#include "napi/cancel_object.h"

#include "napi/addon_data.h"

namespace tapline {

void CancelObject::define(Napi::Env env, Napi::Object exports) {
  const Napi::Function constructor =
      DefineClass(env, "CancelToken", {method_named<&CancelObject::cancel>("cancel")});
  AddonData::of(env).cancel_token_class = Napi::Persistent(constructor);
  exports.Set("CancelToken", constructor);
}

CancelObject::CancelObject(const Napi::CallbackInfo& info) : GuardedObject<CancelObject>(info) {}

CancelToken CancelObject::from(const Napi::Value& value) {
  if (!value.IsObject()) return {};
  const Napi::Object object = value.As<Napi::Object>();
  if (!object.InstanceOf(AddonData::of(value.Env()).cancel_token_class.Value())) return {};
  CancelObject* self = Unwrap(object);
  return self != nullptr ? self->token_ : CancelToken();
}

Napi::Value CancelObject::cancel(const Napi::CallbackInfo& info) {
  token_.cancel();
  return info.Env().Undefined();
}

}  // namespace tapline
