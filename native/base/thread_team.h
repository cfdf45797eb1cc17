#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tapline {

/// Threads that share the indices of a loop and stay awake for a few microseconds between the short loops of
/// a training run. The calling thread is one of them. Only one caller at a time.
class ThreadTeam {
 public:
  /// `threads` in total, at least 1. If the system provides fewer, the team is smaller.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Runs body(0) ... body(count - 1), each once, in any order and on any thread; returns when all are done.
  /// If some of them throw, it still waits for all and throws one of the exceptions.
  void parallel_for(int count, const std::function<void(int)>& body);

  /// The default: all processors, at most 16.
  static int default_size();

 private:
  void work();
  bool run_one();

  // The number of the loop (high half) and of its indices that are still available (low half): one word, so
  // that a thread that wakes late cannot take an index of a later loop.
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int> unfinished_{0};
  const std::function<void(int)>* body_ = nullptr;
  int count_ = 0;
  std::atomic_flag failed_ = ATOMIC_FLAG_INIT;
  std::exception_ptr failure_;  // of the loop; written by the first to set failed_, before it has finished

  std::atomic<bool> stopping_{false};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

}  // namespace tapline
