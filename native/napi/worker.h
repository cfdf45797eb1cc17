#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/cancel.h"
#include "napi/addon_data.h"
#include "napi/errors.h"
#include "napi/js_function.h"
#include "napi/setup.h"

namespace tapline {

/// Tells a JavaScript callback about progress from a worker thread.
///
/// Lifetime rules: created and destroyed on the JavaScript thread; never keeps the process alive (unref'd).
/// At most one call in 40 ms waits for JavaScript, and a newer one takes its place; the last one is made
/// before the operation's promise settles.
class Progress {
 public:
  Progress() = default;
  Progress(Napi::Env env, const Napi::Value& callback) {
    if (env.IsExceptionPending() || !callback.IsFunction()) return;
    const auto function = callback.As<Napi::Function>();
    wake_ = Napi::ThreadSafeFunction::New(env, function, "tapline progress", 0, 1);
    wake_.Unref(env);
    waiting_ = std::make_shared<Waiting>(function);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&& other) noexcept { *this = std::move(other); }
  Progress& operator=(Progress&& other) noexcept {
    std::swap(wake_, other.wake_);
    std::swap(waiting_, other.waiting_);
    return *this;
  }
  ~Progress() {
    if (!waiting_) return;
    waiting_->function.release();
    wake_.Release();
  }

  /// `done` of `total`, in whatever unit the operation documents. The operation's thread.
  void report(double done, double total) {
    if (!is_due(done, total)) return;
    call_soon([done, total](Napi::Env env, JsFunction& callback) {
      callback.call({Napi::Number::New(env, done), Napi::Number::New(env, total)});
    });
  }

  /// The same with what is known so far as a third argument: `make()` is called only where somebody hears of
  /// it, and `write(env, made)` on the JavaScript thread.
  template <class Make, class Write>
  void report(double done, double total, const Make& make, Write write) {
    if (!is_due(done, total)) return;
    call_soon([done, total, write, made = make()](Napi::Env env, JsFunction& callback) {
      callback.call({Napi::Number::New(env, done), Napi::Number::New(env, total), write(env, made)});
    });
  }

  /// What an operation calls that counts; not longer than this object stays where it is.
  auto counter() {
    return [this](auto done, auto total) { report(static_cast<double>(done), static_cast<double>(total)); };
  }

  /// Makes the call that waits, on the JavaScript thread.
  void deliver(Napi::Env env) {
    if (waiting_) waiting_->deliver(env);
  }

 private:
  using Call = std::function<void(Napi::Env, JsFunction&)>;

  /// Outlives the progress in wakes that are under way: the function is given back by then, and none is made.
  struct Waiting {
    explicit Waiting(Napi::Function callback) : function(callback) {}

    void deliver(Napi::Env env) {
      Call made;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        made.swap(call);
      }
      if (!made) return;
      const Napi::HandleScope scope(env);
      made(env, function);
      // What a callback throws is nobody's to catch: neither the operation's nor the next callback's.
      if (env.IsExceptionPending()) napi_fatal_exception(env, env.GetAndClearPendingException().Value());
    }

    JsFunction function;
    std::mutex mutex;
    Call call;
  };

  void call_soon(Call call) {
    {
      const std::lock_guard<std::mutex> lock(waiting_->mutex);
      std::swap(waiting_->call, call);
    }
    if (call) return;  // the one whose place it took has woken JavaScript
    wake_.NonBlockingCall([waiting = waiting_](Napi::Env env, Napi::Function) { waiting->deliver(env); });
  }

  bool is_due(double done, double total) {
    if (!waiting_) return false;
    const auto now = std::chrono::steady_clock::now();
    if (done < total && now - last_ < std::chrono::milliseconds(40)) return false;
    last_ = now;
    return true;
  }

  Napi::ThreadSafeFunction wake_;
  std::shared_ptr<Waiting> waiting_;  // where there is a callback
  std::chrono::steady_clock::time_point last_{};
};

/// What waits of an operation's progress; nothing of one that tells of none.
template <class Operation>
auto deliver_progress(Napi::Env env, Operation& operation, int) -> decltype(operation.progress.deliver(env)) {
  operation.progress.deliver(env);
}
template <class Operation>
void deliver_progress(Napi::Env, Operation&, long) {}

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
    deliver_progress(env, operation_, 0);
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
