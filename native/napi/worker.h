#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/cancel.h"
#include "napi/addon_data.h"
#include "napi/args.h"
#include "napi/cancel_object.h"
#include "napi/errors.h"
#include "napi/js_function.h"
#include "napi/results.h"
#include "napi/setup.h"

namespace tapline {

/// Reports progress from a worker thread to a JavaScript callback.
///
/// Lifetime rules: created and destroyed on the JavaScript thread; never keeps the process alive (unref'd).
/// At most one call per 40 ms is pending, and a newer one replaces it; the last one is made before the
/// operation's promise settles.
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

  /// The same with intermediate results as a third argument: `make()` is called only if a report is due, and
  /// `write(env, made)` on the JavaScript thread.
  template <class Make, class Write>
  void report(double done, double total, const Make& make, Write write) {
    if (!is_due(done, total)) return;
    call_soon([done, total, write, made = make()](Napi::Env env, JsFunction& callback) {
      callback.call({Napi::Number::New(env, done), Napi::Number::New(env, total), write(env, made)});
    });
  }

  /// A callback for operations that count. Valid until this object is moved or destroyed.
  auto counter() {
    return [this](auto done, auto total) { report(static_cast<double>(done), static_cast<double>(total)); };
  }

  /// Makes the pending call, on the JavaScript thread.
  void deliver(Napi::Env env) {
    if (waiting_) waiting_->deliver(env);
  }

 private:
  using Call = std::function<void(Napi::Env, JsFunction&)>;

  /// Outlives the progress in pending wake-ups, which then find the function released and make no call.
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
      // A callback's exception concerns neither the operation nor the next callback.
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
    if (call) return;  // the call that it replaces has woken JavaScript
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
  std::shared_ptr<Waiting> waiting_;  // null without a callback
  std::chrono::steady_clock::time_point last_{};
};

/// The result of an operation: what compute(cancel, progress) returns, which may take fewer arguments.
template <class Compute>
auto computed(Compute& compute, const CancelToken& cancel, Progress& progress) {
  if constexpr (std::is_invocable_v<Compute&, const CancelToken&, Progress&>) {
    return compute(cancel, progress);
  } else if constexpr (std::is_invocable_v<Compute&, const CancelToken&>) {
    return compute(cancel);
  } else {
    return compute();
  }
}

/// One operation of a call and its promise.
template <class Compute, class Write>
class Operation final : public Task {
 public:
  Operation(Napi::Env env, CancelToken cancel, Progress progress, Compute compute, Write write)
      : Task(std::move(cancel)),
        deferred_(Napi::Promise::Deferred::New(env)),
        progress_(std::move(progress)),
        compute_(std::move(compute)),
        write_(std::move(write)) {}

  Napi::Promise promise() const { return deferred_.Promise(); }

  void execute() override {
    failure_ = catching([this] {
      cancel().check();
      found_.emplace(computed(compute_, cancel(), progress_));
    });
  }

  void settle(Napi::Env env) override {
    progress_.deliver(env);
    settle_promise(env, deferred_, std::move(failure_), [&] { return write_(env, *found_); });
  }

 private:
  Napi::Promise::Deferred deferred_;
  Progress progress_;
  Compute compute_;
  Write write_;
  std::optional<decltype(computed(std::declval<Compute&>(), std::declval<const CancelToken&>(),
                                  std::declval<Progress&>()))>
      found_;
  Failure failure_;
};

/// Runs found = compute(cancel, progress) on a thread of the environment, with the call's `cancel` and
/// `onProgress`; compute works on plain data only and may throw. The promise resolves with write(env, found)
/// or rejects with an Error that has a code. If reading the arguments has thrown (a getter, a proxy), that
/// exception goes to the caller instead.
template <class Compute, class Write>
Napi::Value start(const Call& call, Compute compute, Write write) {
  CancelToken cancel = CancelObject::from(call.options.Get("cancel"));
  Progress progress(call.env, call.options.Get("onProgress"));
  if (call.env.IsExceptionPending()) return {};
  auto task = std::make_unique<Operation<Compute, Write>>(call.env, std::move(cancel), std::move(progress),
                                                          std::move(compute), std::move(write));
  const Napi::Promise promise = task->promise();
  AddonData::of(call.env).operations.start(call.env, std::move(task));
  return promise;
}

/// The same with a result that to_js() writes, or with none.
template <class Compute>
Napi::Value start(const Call& call, Compute compute) {
  using Found = decltype(computed(compute, std::declval<const CancelToken&>(), std::declval<Progress&>()));
  if constexpr (std::is_void_v<Found>) {
    return start(
        call,
        [compute = std::move(compute)](const CancelToken& cancel, Progress& progress) mutable {
          computed(compute, cancel, progress);
          return true;
        },
        [](Napi::Env env, bool) { return env.Undefined(); });
  } else {
    return start(call, std::move(compute),
                 [](Napi::Env env, const Found& found) { return to_js(env, found); });
  }
}

/// Adds a function to the module.
template <Napi::Value (*function)(const Call&)>
void define(Napi::Object exports, const char* name) {
  const auto call = [](const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&] { return function(Call(info)); });
  };
  exports.Set(name, Napi::Function::New(exports.Env(), call, name));
}

}  // namespace tapline
