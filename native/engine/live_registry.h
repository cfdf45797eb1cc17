#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "engine/live_request.h"

namespace tapline {

/// Which tasks of the scheduler carry a live request. Filled where a task gets its id, before it is posted,
/// so that no row of it is ever computed without its plan.
class LiveRegistry {
 public:
  struct Entry {
    std::shared_ptr<LiveRequest> request;
    size_t index = 0;  // of the task's result
  };

  void add(int task, std::shared_ptr<LiveRequest> request, size_t index);
  void remove(int task);
  /// An empty entry where the task carries none.
  Entry find(int task) const;
  /// Without a lock: nobody is here most of the time.
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }
  /// Forgets requests that nobody waits for any more and whose task is in no slot: they were cancelled before
  /// they had one.
  void sweep(const std::function<bool(int task)>& in_slot);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<int, Entry> entries_;
  std::atomic<size_t> size_{0};
};

}  // namespace tapline
