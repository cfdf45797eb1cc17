#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/counted.h"
#include "base/task_pool.h"
#include "napi/setup.h"

namespace tapline {

/// One operation that runs outside the JavaScript thread.
class Task : public Counted<Task> {
 public:
  explicit Task(CancelToken cancel) : cancel_(std::move(cancel)) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  virtual void execute() = 0;              // pool thread; does not throw
  virtual void settle(Napi::Env env) = 0;  // JavaScript thread, after execute()

  CancelToken& cancel() { return cancel_; }

 private:
  CancelToken cancel_;
};

/// The threads on which the operations of one JavaScript environment run.
///
/// They are not libuv's: a terminated worker thread waits for operations there before any hook could cancel
/// them, process.exit() waits for them without running a hook at all, and four long operations would block
/// every file access of the process. Lifetime rules:
///  1. Tasks are created, settled and destroyed on the JavaScript thread.
///  2. close() cancels, joins all threads and destroys all tasks. Nothing uses the environment afterwards.
///  3. The wake-up function carries no data, so nothing is lost with it when the environment ends.
class TaskThreads {
 public:
  TaskThreads();
  ~TaskThreads() { close(); }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  /// Runs the task; the process stays alive until it has settled. After close() it is dropped unsettled.
  /// Throws kOutOfMemory if the system has no thread for it, and std::bad_alloc; nothing has started then.
  void start(Napi::Env env, std::unique_ptr<Task> task);

  void close();

 private:
  void wake_for(Task* task);  // pool thread, once the task has executed
  void settle_done(Napi::Env env);
  static void on_wake(napi_env env, napi_value function, void* self, void* data);

  std::mutex mutex_;
  std::vector<Task*> done_;  // has capacity for all tasks: pool threads allocate nothing
  bool closed_ = false;
  std::list<std::unique_ptr<Task>> tasks_;  // all that have not settled; JavaScript thread only
  napi_threadsafe_function wake_ = nullptr;
  TaskPool pool_;
};

}  // namespace tapline
