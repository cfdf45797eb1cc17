#include "engine/live_registry.h"

#include <algorithm>
#include <utility>

namespace tapline {

void LiveRegistry::add(int task, std::shared_ptr<LiveRequest> request, size_t index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[task] = {std::move(request), index};
  size_.store(entries_.size(), std::memory_order_release);
}

void LiveRegistry::remove(int task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.erase(task);
  size_.store(entries_.size(), std::memory_order_release);
}

LiveRegistry::Entry LiveRegistry::find(int task) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(task);
  return found == entries_.end() ? Entry() : found->second;
}

bool LiveRegistry::all(const std::function<bool(const LiveRequest&)>& test) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::all_of(entries_.begin(), entries_.end(),
                     [&](const auto& entry) { return test(*entry.second.request); });
}

void LiveRegistry::sweep(const std::function<bool(int task)>& in_slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unordered_map<const LiveRequest*, long> registered;
  for (const auto& [task, entry] : entries_) ++registered[entry.request.get()];
  for (auto it = entries_.begin(); it != entries_.end();) {
    // Unreferenced except by this registry; that stays true when its entries are erased one by one.
    const bool alone = it->second.request.use_count() <= registered[it->second.request.get()];
    if (alone && !in_slot(it->first)) {
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  size_.store(entries_.size(), std::memory_order_release);
}

}  // namespace tapline
