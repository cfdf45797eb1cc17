#pragma once

#include <string>

#include "base/error.h"
#include "napi/setup.h"

namespace tapline {

/// A JavaScript Error with `code`, from one of ours. src/native/error.ts turns it into NativeError.
Napi::Error to_js_error(Napi::Env env, ErrorCode code, const std::string& sentence);

/// What a worker thread caught, carried to the JavaScript thread.
struct Failure {
  bool failed = false;
  ErrorCode code = ErrorCode::kInternal;
  std::string sentence;
};

/// Runs `work`, and turns whatever it throws into a Failure: the one place where exceptions end.
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

/// A promise that is rejected with an Error of that code.
Napi::Promise rejected(Napi::Env env, ErrorCode code, const std::string& sentence);

/// Ends a promise on the JavaScript thread: with what failed, or with the value of make().
template <class Make>
void settle_promise(Napi::Env env, const Napi::Promise::Deferred& deferred, Failure failure, Make&& make) {
  Napi::Value value;
  if (!failure.failed) failure = catching([&] { value = make(); });
  if (failure.failed) {
    deferred.Reject(to_js_error(env, failure.code, failure.sentence).Value());
  } else if (env.IsExceptionPending()) {
    deferred.Reject(env.GetAndClearPendingException().Value());
  } else {
    deferred.Resolve(value);
  }
}

/// Runs what a call from JavaScript does on its thread (reads arguments, copies them, starts threads): what
/// it throws becomes the call's exception.
template <class Call>
Napi::Value guarded(Napi::Env env, Call&& call) {
  Napi::Value value;
  const Failure failure = catching([&] { value = call(); });
  if (failure.failed && !env.IsExceptionPending())
    to_js_error(env, failure.code, failure.sentence).ThrowAsJavaScriptException();
  return value;
}

/// A function of the module, guarded.
template <Napi::Value (*call)(const Napi::CallbackInfo&)>
Napi::Value guarded_function(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return call(info); });
}

/// A class of the module: its methods are given to JavaScript as guarded_method<&Class::method>.
template <class Class>
class GuardedObject : public Napi::ObjectWrap<Class> {
 public:
  using Napi::ObjectWrap<Class>::ObjectWrap;

  template <Napi::Value (Class::*method)(const Napi::CallbackInfo&)>
  Napi::Value guarded_method(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&] { return (static_cast<Class*>(this)->*method)(info); });
  }

  /// For DefineClass().
  template <Napi::Value (Class::*method)(const Napi::CallbackInfo&)>
  static Napi::ClassPropertyDescriptor<Class> method_named(const char* name) {
    return Class::InstanceMethod(name, &GuardedObject::template guarded_method<method>);
  }
};

}  // namespace tapline
