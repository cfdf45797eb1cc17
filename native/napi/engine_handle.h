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

/// Binds one Engine to one JavaScript environment. See the lifetime rules in engine_object.h.
class EngineHandle : public Counted<EngineHandle> {
 public:
  using Settle = std::function<Napi::Value(Napi::Env)>;
  enum class AfterFailure { kKeep, kRelease };

  /// Kept alive by its thread-safe function until release() or until the environment goes away.
  static std::shared_ptr<EngineHandle> create(Napi::Env env, EngineOptions options, Napi::Function on_failure,
                                              Napi::Function on_progress);
  ~EngineHandle();

  Engine& engine() { return *engine_; }

  /// Runs `work` on a thread of its own and settles the promise on the JavaScript thread: with the value
  /// of `settle`, or with what either threw. For load and close, which are rare, take long and must not wait
  /// behind captures for a thread. Throws where the system has no thread; nothing has started then.
  Napi::Promise run(Napi::Env env, std::function<void()> work, Settle settle,
                    AfterFailure after_failure = AfterFailure::kKeep);

  /// The next event of a request.
  Napi::Promise read(Napi::Env env, RequestId id);

  /// Tells JavaScript how far the loading is. Any thread.
  void report(const std::string& stage, double fraction);

  /// Queues `function` for the JavaScript thread. Any thread; never blocks.
  void post(std::function<void(Napi::Env)> function);

  /// process.exit() runs no cleanup hook, and no thread of an engine may outlive it: ends all of them.
  static void end_all(Napi::Env env);

  /// After the engine's close(): lets go of the environment, once no other operation is under way.
  /// JavaScript thread; safe to call twice.
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
  bool silent_ = false;  // the environment is going away: nothing is posted any more

  // JavaScript thread only: a reference that goes on another one ends the process.
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
