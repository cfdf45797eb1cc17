#include "napi/errors.h"

namespace tapline {

Napi::Error to_js_error(Napi::Env env, ErrorCode code, const std::string& sentence) {
  Napi::Error error = Napi::Error::New(env, sentence);
  error.Set("code", Napi::String::New(env, error_code_name(code)));
  return error;
}

Napi::Promise rejected(Napi::Env env, ErrorCode code, const std::string& sentence) {
  const auto deferred = Napi::Promise::Deferred::New(env);
  deferred.Reject(to_js_error(env, code, sentence).Value());
  return deferred.Promise();
}

}  // namespace tapline
