#include "napi/errors.h"

namespace tapline {

Napi::Error to_js_error(Napi::Env env, ErrorCode code, const std::string& sentence) {
  Napi::Error error = Napi::Error::New(env, sentence);
  error.Set("code", Napi::String::New(env, error_code_name(code)));
  return error;
}

}  // namespace tapline
