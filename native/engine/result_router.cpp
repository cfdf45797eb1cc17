#include "engine/result_router.h"

#include <utility>

namespace tapline {

namespace {

/// The longest sleep of the waiting thread; all relevant events wake it.
constexpr int kWaitSeconds = 1;

/// A CANCEL can overtake its task: the scheduler may be about to defer the task when it arrives. So it is
/// sent a second time.
constexpr auto kCancelAgain = std::chrono::milliseconds(50);

struct Wake final : server_task_result {
  json to_json() override { return json::object(); }
};

}  // namespace

ResultRouter::ResultRouter(server_queue& tasks, server_response& results, size_t threads)
    : tasks_(tasks),
      results_(results),
      wake_id_(tasks.get_new_id()),
      n_threads_(threads),
      threads_(threads, threads) {
  results_.add_waiting_task_id(wake_id_);
  awaited_.insert(wake_id_);
  for (size_t i = 0; i < threads; ++i) threads_.submit([this] { work(); });
}

ResultRouter::~ResultRouter() {
  stop();
}

void ResultRouter::post(std::shared_ptr<Request> owner, const std::vector<int>& ids,
                        std::vector<server_task>&& tasks) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const int id : ids) {
      owners_.emplace(id, owner);
      changes_.emplace_back(id, true);
    }
  }
  for (const int id : ids) results_.add_waiting_task_id(id);
  wake();
  tasks_.post(std::move(tasks));
}

void ResultRouter::forget(const std::vector<int>& ids) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const int id : ids) {
      owners_.erase(id);
      changes_.emplace_back(id, false);
    }
  }
  for (const int id : ids) results_.remove_waiting_task_id(id);
}

void ResultRouter::cancel(const std::vector<int>& ids) {
  forget(ids);
  post_cancel(ids);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int id : ids) cancelled_.push_back({id, std::chrono::steady_clock::now() + kCancelAgain});
}

void ResultRouter::post_cancel(const std::vector<int>& ids) {
  std::vector<server_task> cancels;
  cancels.reserve(ids.size());
  for (const int id : ids) {
    server_task task(SERVER_TASK_TYPE_CANCEL);
    task.id_target = id;
    cancels.push_back(std::move(task));
  }
  tasks_.post(std::move(cancels), /*front=*/true);
}

void ResultRouter::repeat_cancels() {
  std::vector<int> due;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    while (!cancelled_.empty() && cancelled_.front().again <= now) {
      due.push_back(cancelled_.front().id);
      cancelled_.pop_front();
    }
  }
  if (!due.empty()) post_cancel(due);
}

void ResultRouter::stop() {
  if (stopping_.exchange(true)) return;
  for (size_t i = 0; i < n_threads_; ++i) wake();
  threads_.stop();
}

void ResultRouter::wake() {
  auto result = std::make_unique<Wake>();
  result->id = wake_id_;
  results_.send(std::move(result));
}

void ResultRouter::refresh() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, awaited] : changes_) {
    if (awaited) {
      awaited_.insert(id);
    } else {
      awaited_.erase(id);
    }
  }
  changes_.clear();
}

void ResultRouter::work() {
  while (!stopping_) {
    std::shared_ptr<Request> owner;
    bool mine = false;
    {
      const std::lock_guard<std::mutex> lead(leading_);
      if (stopping_) return;
      repeat_cancels();
      refresh();
      server_task_result_ptr result = results_.recv_with_timeout(awaited_, kWaitSeconds);
      if (!result || result->id == wake_id_) continue;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = owners_.find(result->id);
        if (found == owners_.end()) continue;
        owner = found->second;
      }
      // With the lock, so that results of one request arrive in order.
      mine = owner->take(std::move(result));
    }
    if (mine) owner->process();
  }
}

}  // namespace tapline
