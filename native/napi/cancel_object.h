#pragma once

#include "base/cancel.h"
#include "napi/errors.h"
#include "napi/setup.h"

namespace tapline {

/// `new CancelToken()` in JavaScript: passed to an operation, cancelled by `cancel()`.
class CancelObject : public GuardedObject<CancelObject> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit CancelObject(const Napi::CallbackInfo& info);

  /// The token in `value`, or a fresh one that nobody can cancel when `value` is something else.
  static CancelToken from(const Napi::Value& value);

 private:
  Napi::Value cancel(const Napi::CallbackInfo& info);
  CancelToken token_;
};

}  // namespace tapline
