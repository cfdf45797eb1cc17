#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "napi/setup.h"

namespace tapline {

/// What a worker thread caught, carried to the JavaScript thread.
struct Failure {
  bool failed = false;
  ErrorCode code = ErrorCode::kInternal;
  std::string sentence;

  /// A JavaScript Error with `code`. src/native/error.ts turns it into NativeError.
  Napi::Error to_js(Napi::Env env) const {
    Napi::Error error = Napi::Error::New(env, sentence);
    error.Set("code", Napi::String::New(env, error_code_name(code)));
    return error;
  }
};

/// Runs `work` and turns whatever it throws into a Failure: the one place where exceptions end.
template <class Work>
Failure catching(Work&& work) {
  try {
    work();
    return {};
  } catch (const Error& error) {
    return {true, error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {true, ErrorCode::kOutOfMemory, "There is not enough memory for this operation."};
  } catch (const std::exception& error) {
    return {true, ErrorCode::kInternal, error.what()};
  } catch (...) {
    return {true, ErrorCode::kInternal, "An unknown error occurred in native code."};
  }
}

inline Napi::Promise rejected(Napi::Env env, ErrorCode code, const std::string& sentence) {
  const auto deferred = Napi::Promise::Deferred::New(env);
  deferred.Reject(Failure{true, code, sentence}.to_js(env).Value());
  return deferred.Promise();
}

/// Settles a promise on the JavaScript thread: with the failure, or with the value of make().
template <class Make>
void settle_promise(Napi::Env env, const Napi::Promise::Deferred& deferred, Failure failure, Make&& make) {
  Napi::Value value;
  if (!failure.failed) failure = catching([&] { value = make(); });
  if (failure.failed) {
    deferred.Reject(failure.to_js(env).Value());
  } else if (env.IsExceptionPending()) {
    deferred.Reject(env.GetAndClearPendingException().Value());
  } else {
    deferred.Resolve(value);
  }
}

/// Runs the part of a call on the JavaScript thread (reads arguments, copies them, starts threads). Whatever
/// it throws becomes the call's exception.
template <class Work>
Napi::Value guarded(Napi::Env env, Work&& work) {
  Napi::Value value;
  const Failure failure = catching([&] { value = work(); });
  if (failure.failed && !env.IsExceptionPending()) failure.to_js(env).ThrowAsJavaScriptException();
  return value;
}

}  // namespace tapline
