#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "napi/errors.h"
#include "napi/js_function.h"
#include "napi/setup.h"

namespace tapline {

/// Binds one Engine to one JavaScript environment. Lifetime rules:
/// 1. All state that JavaScript waits for is here and is used on the JavaScript thread only; engine threads
///    reach it through one thread-safe function.
/// 2. That function keeps the process alive exactly while a promise is pending.
/// 3. When the environment ends without close(), a cleanup hook first ends the engine's threads. The hook was
///    added after the thread-safe function, so it runs before Node destroys that function.
class EngineHandle : public Counted<EngineHandle> {
 public:
  using Settle = std::function<Napi::Value(Napi::Env)>;
  enum class AfterFailure { kKeep, kRelease };

  /// Its thread-safe function keeps it alive until release() or until the environment ends.
  static std::shared_ptr<EngineHandle> create(Napi::Env env, EngineOptions options, Napi::Function on_failure,
                                              Napi::Function on_progress);
  ~EngineHandle();

  Engine& engine() { return *engine_; }

  /// Runs `work` on a separate thread and settles the promise on the JavaScript thread, with the value of
  /// `settle` or with the error of either. For load and close, which are rare, take long and must not queue
  /// after captures. Throws if the system has no thread; nothing has started then.
  Napi::Promise run(Napi::Env env, std::function<void()> work, Settle settle,
                    AfterFailure after_failure = AfterFailure::kKeep);

  /// The next event of a request.
  Napi::Promise read(Napi::Env env, RequestId id);

  /// Reports loading progress to JavaScript. Any thread.
  void report(const std::string& stage, double fraction);

  /// Queues `function` for the JavaScript thread. Any thread; never blocks.
  void post(std::function<void(Napi::Env)> function);

  /// Ends the threads of all engines: process.exit() runs no cleanup hook, and no thread may outlive it.
  static void end_all(Napi::Env env);

  /// After the engine's close(): releases the environment once no other operation is running. JavaScript
  /// thread; safe to call twice.
  void release(Napi::Env env);

 private:
  struct Job {
    std::thread thread;
    Failure failure;
  };

  EngineHandle(EngineOptions options, Napi::Function on_failure, Napi::Function on_progress);
  void attach(Napi::Env env, std::shared_ptr<EngineHandle> self);
  void release_if_idle(Napi::Env env);
  void deliver_calls(Napi::Env env);
  void teardown();
  void settle_read(Napi::Env env, RequestId id, const Event& event);
  void pending(Napi::Env env, int change);

  static void on_calls(napi_env env, napi_value, void* self, void*);
  static void on_teardown(void* self);

  napi_threadsafe_function wake_ = nullptr;
  std::mutex calls_mutex_;
  std::vector<std::function<void(Napi::Env)>> calls_;
  bool silent_ = false;  // the environment is ending: nothing is posted

  // JavaScript thread only: a reference that is freed on a different thread ends the process.
  JsFunction on_failure_;
  JsFunction on_progress_;
  std::unordered_map<RequestId, Napi::Promise::Deferred> reads_;
  std::list<Job> jobs_;
  int pending_ = 0;
  bool release_wanted_ = false;
  bool released_ = false;

  std::unique_ptr<Engine> engine_;
};

}  // namespace tapline
