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

/// Threads that share the indices of a loop, and stay awake for a few microseconds between the short loops of
/// a training run. The calling thread is one of them. Not for use by two callers at once.
class ThreadTeam {
 public:
  /// `threads` in all, at least 1. Where the system gives fewer, the team is smaller.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Runs body(0) ... body(count - 1), each once, in any order and on any thread; returns when all are done.
  /// Where some of them throw, all are still waited for, and one of the exceptions is thrown here.
  void parallel_for(int count, const std::function<void(int)>& body);

  /// Processors to use when the caller names no number: all of them, but at most 16.
  static int default_size();

 private:
  void work();
  bool run_one();

  // Which loop this is (high half) and how many of its indices nobody has taken yet (low half): one word, so
  // that a thread that overslept cannot take an index of another loop.
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
