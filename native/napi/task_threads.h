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

/// One operation away from the JavaScript thread.
class Task : public Counted<Task> {
 public:
  explicit Task(CancelToken cancel) : cancel_(std::move(cancel)) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  virtual void execute() = 0;              // a thread of ours; does not throw
  virtual void settle(Napi::Env env) = 0;  // JavaScript thread, after execute()

  CancelToken& cancel() { return cancel_; }

 private:
  CancelToken cancel_;
};

/// The threads on which the operations of one JavaScript environment run.
///
/// Not libuv's: a worker thread that is terminated waits for operations there before any hook could cancel
/// them, process.exit() waits for them without running a hook at all, and four long operations would stop
/// every file access of the process. Lifetime rules:
///  1. Tasks are created, settled and destroyed on the JavaScript thread.
///  2. close() cancels, joins all threads and destroys all tasks. After it, nothing of ours uses the
///  environment.
///  3. The wake-up function carries no data, so that nothing is lost with it when the environment ends.
class TaskThreads {
 public:
  TaskThreads();
  ~TaskThreads() { close(); }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  /// Runs the task; the process stays alive until it has settled. After close() it is dropped unsettled.
  /// Throws kOutOfMemory where the system has no thread for it, and std::bad_alloc; nothing has started then.
  void start(Napi::Env env, std::unique_ptr<Task> task);

  void close();

 private:
  void wake_for(Task* task);  // a thread of ours, once the task has executed
  void settle_done(Napi::Env env);
  static void on_wake(napi_env env, napi_value function, void* self, void* data);

  std::mutex mutex_;
  std::vector<Task*> done_;  // has room for all tasks: a thread of ours allocates nothing
  bool closed_ = false;
  std::list<std::unique_ptr<Task>> tasks_;  // all that have not settled; JavaScript thread only
  napi_threadsafe_function wake_ = nullptr;
  TaskPool pool_;
};

}  // namespace tapline
