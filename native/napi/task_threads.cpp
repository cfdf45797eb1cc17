#include "napi/task_threads.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace tapline {

namespace {

/// More operations than this wait for each other; each uses several cores by itself.
constexpr size_t kMostThreads = 16;

}  // namespace

void TaskThreads::start(Napi::Env env, std::unique_ptr<Task> task) {
  if (closed_) return;
  add_thread();
  if (wake_ == nullptr) {
    const Napi::String name = Napi::String::New(env, "tapline operations");
    const napi_status status = napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr,
                                                               nullptr, this, on_wake, &wake_);
    if (status != napi_ok) return;  // the environment ends
  } else if (tasks_.empty()) {
    napi_ref_threadsafe_function(env, wake_);
  }
  std::list<Task*> added{task.get()};
  tasks_.push_back(std::move(task));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.splice(waiting_.end(), added);
  }
  waiting_changed_.notify_one();
}

/// One more where nobody is idle. Tasks wait for the threads that there are when the system has no more.
void TaskThreads::add_thread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.size() < idle_ || threads_.size() >= kMostThreads) return;
  }
  threads_.reserve(kMostThreads);
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    if (threads_.empty())
      throw Error(ErrorCode::kOutOfMemory, "The system has no more threads for this process.");
  }
}

void TaskThreads::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_;
    waiting_changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    --idle_;
    if (closed_) return;
    std::list<Task*> mine;
    mine.splice(mine.end(), waiting_, waiting_.begin());
    lock.unlock();
    mine.front()->execute();
    lock.lock();
    done_.splice(done_.end(), mine);
    // Never blocks: the queue has no limit. A failure means that the environment ends, and close() follows.
    if (!closed_) napi_call_threadsafe_function(wake_, nullptr, napi_tsfn_nonblocking);
  }
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
      done_.pop_front();
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
  waiting_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  waiting_.clear();
  done_.clear();
  tasks_.clear();
}

}  // namespace tapline
