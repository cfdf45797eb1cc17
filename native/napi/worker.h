#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "base/cancel.h"
#include "napi/addon_data.h"
#include "napi/errors.h"
#include "napi/kept.h"
#include "napi/setup.h"

namespace tapline {

/// Tells a JavaScript callback about progress from a worker thread.
///
/// Lifetime rules: created and destroyed on the JavaScript thread; never keeps the process alive (unref'd);
/// calls are dropped, not queued, when JavaScript does not keep up; at most one call in 40 ms.
class Progress {
 public:
  Progress() = default;
  Progress(Napi::Env env, const Napi::Value& callback) {
    if (env.IsExceptionPending() || !callback.IsFunction()) return;
    function_ = Napi::ThreadSafeFunction::New(env, callback.As<Napi::Function>(), "tapline progress", 8, 1);
    function_.Unref(env);
    kept_ = std::make_unique<KeptMark>();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&& other) noexcept { *this = std::move(other); }
  Progress& operator=(Progress&& other) noexcept {
    std::swap(function_, other.function_);
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~Progress() {
    if (kept_) function_.Release();
  }

  /// `done` of `total`, in whatever unit the operation documents. Any thread.
  void report(double done, double total) {
    if (!is_due(done, total)) return;
    function_.NonBlockingCall([done, total](Napi::Env env, Napi::Function callback) {
      callback.Call({Napi::Number::New(env, done), Napi::Number::New(env, total)});
    });
  }

  /// The same with what is known so far as a third argument: `make()` is called only where somebody hears of
  /// it, and `write(env, made)` on the JavaScript thread.
  template <class Make, class Write>
  void report(double done, double total, const Make& make, Write write) {
    if (!is_due(done, total)) return;
    function_.NonBlockingCall([done, total, write, made = make()](Napi::Env env, Napi::Function callback) {
      callback.Call({Napi::Number::New(env, done), Napi::Number::New(env, total), write(env, made)});
    });
  }

  /// What an operation calls that counts; not longer than this object stays where it is.
  auto counter() {
    return [this](auto done, auto total) { report(static_cast<double>(done), static_cast<double>(total)); };
  }

 private:
  bool is_due(double done, double total) {
    if (!kept_) return false;
    const auto now = std::chrono::steady_clock::now();
    if (done < total && now - last_ < std::chrono::milliseconds(40)) return false;
    last_ = now;
    return true;
  }

  Napi::ThreadSafeFunction function_;
  std::unique_ptr<KeptMark> kept_;  // where there is a function
  std::chrono::steady_clock::time_point last_{};
};

/// Runs one operation on a thread of the environment and settles its promise on the JavaScript thread.
///
/// An operation is a small movable struct with
///   void execute(const CancelToken&);   // other thread: plain data only, may throw
///   Napi::Value result(Napi::Env);      // JavaScript thread, after execute() returned
template <class Operation>
class OperationTask final : public Task {
 public:
  OperationTask(Napi::Env env, Operation operation, CancelToken cancel)
      : Task(std::move(cancel)),
        deferred_(Napi::Promise::Deferred::New(env)),
        operation_(std::move(operation)) {}

  Napi::Promise promise() const { return deferred_.Promise(); }

  void execute() override {
    failure_ = catching([this] {
      cancel().check();
      operation_.execute(cancel());
    });
  }

  void settle(Napi::Env env) override {
    settle_promise(env, deferred_, std::move(failure_), [&] { return operation_.result(env); });
  }

 private:
  Napi::Promise::Deferred deferred_;
  Operation operation_;
  Failure failure_;
};

/// Queues `operation`; the promise resolves with its result() or rejects with an Error that has a code.
/// When reading the arguments has thrown (a getter, a proxy), that exception goes on to the caller instead.
template <class Operation>
Napi::Promise run_async(Napi::Env env, Operation operation, CancelToken cancel = {}) {
  if (env.IsExceptionPending()) return {};
  auto task = std::make_unique<OperationTask<Operation>>(env, std::move(operation), std::move(cancel));
  const Napi::Promise promise = task->promise();
  AddonData::of(env).operations.start(env, std::move(task));
  return promise;
}

}  // namespace tapline
