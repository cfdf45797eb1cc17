#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tapline {

/// A fixed number of threads that run short jobs in the order of submission.
class TaskPool {
 public:
  explicit TaskPool(int threads);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  /// Jobs must not throw. False when the pool has stopped: the job will not run.
  bool submit(std::function<void()> job);

  /// Finishes the running jobs, drops the waiting ones and joins the threads. Safe to call twice.
  void stop();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tapline
