#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <thread>

#include "base/counted.h"
#include "napi/setup.h"

namespace tapline {

/// Accompanies a reference of Node-API that must be released. References are counted, and so are those that
/// are released on a different thread, which Node-API forbids and which ends the process only sometimes, and
/// later.
class ReferenceGuard : public Counted<ReferenceGuard> {
 public:
  ReferenceGuard() = default;
  ReferenceGuard(const ReferenceGuard&) = delete;
  ReferenceGuard& operator=(const ReferenceGuard&) = delete;
  ~ReferenceGuard() {
    if (std::this_thread::get_id() != thread_) ++released_elsewhere_;
  }

  static int64_t released_elsewhere() { return released_elsewhere_.load(); }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  static inline std::atomic<int64_t> released_elsewhere_{0};
};

/// A JavaScript function that is called later, on its JavaScript thread.
class JsFunction {
 public:
  explicit JsFunction(Napi::Function function)
      : function_(Napi::Persistent(function)), guard_(new ReferenceGuard()) {}

  /// Does nothing after release().
  void call(const std::initializer_list<napi_value>& arguments) {
    if (guard_) function_.Call(arguments);
  }
  void release() {
    function_.Reset();
    guard_.reset();
  }

 private:
  Napi::FunctionReference function_;
  std::unique_ptr<ReferenceGuard> guard_;
};

}  // namespace tapline
