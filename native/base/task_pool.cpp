#include "base/task_pool.h"

#include <system_error>
#include <utility>

#include "base/error.h"

namespace tapline {

TaskPool::TaskPool(size_t most, size_t at_once) : most_(most) {
  threads_.reserve(most);
  try {
    for (size_t i = 0; i < at_once; ++i) add_thread();
  } catch (...) {
    stop();  // no destructor runs for what was not constructed
    throw;
  }
}

TaskPool::~TaskPool() {
  stop();
}

void TaskPool::add_thread() {
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    throw Error(ErrorCode::kOutOfMemory, "The system has no more threads for this process.");
  }
}

bool TaskPool::submit(std::function<void()> job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return false;
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_ && threads_.size() < most_) {
      try {
        add_thread();
      } catch (const Error&) {
        if (threads_.empty()) {
          jobs_.pop_back();
          throw;
        }
        // The job waits for one of those that there are.
      }
    }
  }
  changed_.notify_one();
  return true;
}

void TaskPool::stop() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    dropped.swap(jobs_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {  // nobody adds any more
    if (thread.joinable()) thread.join();
  }
}

void TaskPool::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    --idle_;
    if (stopping_) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it holds is freed without the lock
    lock.lock();
  }
}

}  // namespace tapline
