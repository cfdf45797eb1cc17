#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <thread>

#include "base/counted.h"
#include "napi/setup.h"

namespace tapline {

/// Beside something of Node-API's that we keep and have to give back: a reference or a thread-safe function.
/// They are counted, and so are those that were given back on another thread than took them, which Node-API
/// forbids for references and which ends the process only sometimes, and later.
class KeptMark : public Counted<KeptMark> {
 public:
  KeptMark() = default;
  KeptMark(const KeptMark&) = delete;
  KeptMark& operator=(const KeptMark&) = delete;
  ~KeptMark() {
    if (std::this_thread::get_id() != thread_) ++astray_;
  }

  static int64_t astray() { return astray_.load(); }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  static inline std::atomic<int64_t> astray_{0};
};

/// A JavaScript function that is called later, on its own thread.
class KeptFunction {
 public:
  explicit KeptFunction(Napi::Function function)
      : function_(Napi::Persistent(function)), mark_(new KeptMark()) {}

  /// Nothing once it was given back.
  void call(const std::initializer_list<napi_value>& arguments) {
    if (mark_) function_.Call(arguments);
  }
  void give_back() {
    function_.Reset();
    mark_.reset();
  }

 private:
  Napi::FunctionReference function_;
  std::unique_ptr<KeptMark> mark_;
};

}  // namespace tapline
