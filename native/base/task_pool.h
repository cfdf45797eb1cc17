#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tapline {

/// A few threads that run jobs in the order of submission: the way in which this code runs anything beside
/// its caller, but for the loops of ThreadTeam and the thread that generates.
class TaskPool {
 public:
  /// At most `most` threads: `at_once` of them from the beginning, the others when jobs wait for them.
  /// Throws kOutOfMemory where the system has not so many from the beginning.
  TaskPool(size_t most, size_t at_once);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  /// Any thread. Jobs must not throw. False when the pool has stopped: the job will not run. Throws
  /// kOutOfMemory where the system has no thread at all for it, and std::bad_alloc; it will not run then.
  bool submit(std::function<void()> job);

  /// Finishes the running jobs, drops the waiting ones and joins the threads. Safe to call twice.
  void stop();

 private:
  void add_thread();
  void work();

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace tapline
