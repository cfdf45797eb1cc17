#include "napi/task_threads.h"

#include <algorithm>

namespace tapline {

namespace {

/// Further operations are queued; each of them uses several cores.
constexpr size_t kMostThreads = 16;

}  // namespace

TaskThreads::TaskThreads() : pool_(kMostThreads, 0) {}

void TaskThreads::start(Napi::Env env, std::unique_ptr<Task> task) {
  if (closed_) return;
  if (wake_ == nullptr) {
    const Napi::String name = Napi::String::New(env, "tapline operations");
    const napi_status status = napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr,
                                                               nullptr, this, on_wake, &wake_);
    if (status != napi_ok) return;  // the environment ends
    napi_unref_threadsafe_function(env, wake_);
  }
  Task* const added = task.get();
  tasks_.push_back(std::move(task));
  try {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_.reserve(tasks_.size());
    }
    pool_.submit([added] { added->execute(); }, [this, added] { wake_for(added); });
  } catch (...) {
    tasks_.pop_back();
    throw;
  }
  if (tasks_.size() == 1) napi_ref_threadsafe_function(env, wake_);
}

void TaskThreads::wake_for(Task* task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  done_.push_back(task);
  // Never blocks: the queue has no limit. A failure means that the environment ends, and close() follows.
  if (!closed_) napi_call_threadsafe_function(wake_, nullptr, napi_tsfn_nonblocking);
}

void TaskThreads::on_wake(napi_env env, napi_value, void* self, void*) {
  if (env != nullptr) static_cast<TaskThreads*>(self)->settle_done(env);
}

void TaskThreads::settle_done(Napi::Env env) {
  while (true) {
    std::unique_ptr<Task> task;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (done_.empty()) return;
      const auto at = std::find_if(tasks_.begin(), tasks_.end(),
                                   [this](const auto& each) { return each.get() == done_.front(); });
      task = std::move(*at);
      tasks_.erase(at);
      done_.erase(done_.begin());
    }
    if (tasks_.empty()) napi_unref_threadsafe_function(env, wake_);
    const Napi::HandleScope scope(env);
    task->settle(env);
  }
}

void TaskThreads::close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    closed_ = true;
  }
  for (const auto& task : tasks_) task->cancel().cancel();
  pool_.stop();
  done_.clear();
  tasks_.clear();
}

}  // namespace tapline
