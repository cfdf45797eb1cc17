#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace tapline {

/// A few threads that run jobs in the order of submission. All asynchronous work of this code runs here,
/// except the loops of ThreadTeam and the thread that generates.
///
/// Consecutive jobs run on the same thread, and additional threads end. OpenMP keeps a team for each thread
/// that ever computed a graph, and with more team members than processors, none of them spins at barriers:
/// decoding took a fifth longer after the third operation.
class TaskPool {
 public:
  /// At most `most` threads: `at_once` of them from the beginning, others when jobs are waiting. Threads
  /// beyond `at_once` end when no job waits, but one always stays. Throws kOutOfMemory if the system does not
  /// have `at_once` threads.
  TaskPool(size_t most, size_t at_once);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  /// Any thread. Jobs must not throw. `after`, if given, runs on the job's thread once that counts as idle,
  /// so that a job submitted in response needs no additional thread. It must not call this pool. Returns
  /// false if the pool has stopped. Throws kOutOfMemory if the system has no thread for the job, and
  /// std::bad_alloc; the job does not run then.
  bool submit(std::function<void()> job, std::function<void()> after = {});

  /// Finishes the running jobs, drops the waiting ones and joins the threads. Safe to call twice.
  void stop();

 private:
  struct Job {
    std::function<void()> run;
    std::function<void()> after;
  };

  void add_thread();
  void work(std::list<std::thread>::iterator self);
  void join_ended();

  const size_t most_;
  const size_t permanent_;  // threads that stay
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::list<std::thread> threads_;
  std::list<std::thread> ended_;  // to be joined
  size_t idle_ = 0;               // threads that take the next job
  bool stopping_ = false;
};

}  // namespace tapline
