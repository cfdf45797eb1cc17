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

}  // namespace tapline
