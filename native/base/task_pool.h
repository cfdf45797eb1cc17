#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace tapline {

/// A few threads that run jobs in the order of submission: the way in which this code runs anything beside
/// its caller, but for the loops of ThreadTeam and the thread that generates.
///
/// Jobs one after the other run on the same thread, and threads that helped out end. OpenMP keeps a team for
/// each thread that ever computed a graph, and once there are more team members than processors, none of them
/// spins at a barrier any more: decoding took a fifth longer after the third operation.
class TaskPool {
 public:
  /// At most `most` threads: `at_once` of them from the beginning, the others when jobs wait for them. The
  /// first of them stays, at least; those beyond `at_once` end when nothing waits. Throws kOutOfMemory where
  /// the system has not so many from the beginning.
  TaskPool(size_t most, size_t at_once);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  /// Any thread. Jobs must not throw. `after`, if given, runs after the job on its thread, which takes the
  /// next job from then on: what it tells somebody of comes too late to need another thread. It must not call
  /// this pool. False when the pool has stopped: the job will not run. Throws kOutOfMemory where the system
  /// has no thread at all for it, and std::bad_alloc; it will not run then.
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
  std::list<std::thread> ended_;  // to be joined; they need no lock any more
  size_t idle_ = 0;               // threads that take the next job
  bool stopping_ = false;
};

}  // namespace tapline
