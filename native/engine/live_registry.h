#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "engine/live_request.h"

namespace tapline {

/// The live requests by task of the scheduler. A task is added before it is posted, so that none of its rows
/// is computed without its plan.
class LiveRegistry {
 public:
  struct Entry {
    std::shared_ptr<LiveRequest> request;
    size_t index = 0;  // of the task's result
  };

  void add(int task, std::shared_ptr<LiveRequest> request, size_t index);
  void remove(int task);
  /// An empty entry if the task has none.
  Entry find(int task) const;
  /// Whether `test` is true of every request.
  bool all(const std::function<bool(const LiveRequest&)>& test) const;
  /// Without a lock: there are usually no live requests.
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }
  /// Removes abandoned requests whose task is not in a slot: they were cancelled before they had one.
  void sweep(const std::function<bool(int task)>& in_slot);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<int, Entry> entries_;
  std::atomic<size_t> size_{0};
};

}  // namespace tapline
