#include "base/task_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace tapline {

TaskPool::TaskPool(size_t most, size_t at_once) : most_(most), permanent_(std::max<size_t>(at_once, 1)) {
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < at_once; ++i) add_thread();
  } catch (...) {
    stop();  // the destructor does not run
    throw;
  }
}

TaskPool::~TaskPool() {
  stop();
}

// With the lock, so that the thread finds its own place in the list.
void TaskPool::add_thread() {
  join_ended();
  const auto place = threads_.emplace(threads_.end());
  try {
    *place = std::thread([this, place] { work(place); });
  } catch (const std::system_error&) {
    threads_.erase(place);
    throw Error(ErrorCode::kOutOfMemory, "The system has no more threads for this process.");
  }
}

void TaskPool::join_ended() {
  for (std::thread& thread : ended_) thread.join();
  ended_.clear();
}

bool TaskPool::submit(std::function<void()> job, std::function<void()> after) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return false;
    jobs_.push_back({std::move(job), std::move(after)});
    if (jobs_.size() > idle_ && threads_.size() < most_) {
      try {
        add_thread();
      } catch (const Error&) {
        if (threads_.empty()) {
          jobs_.pop_back();
          throw;
        }
        // The job waits for an existing thread.
      }
    }
  }
  changed_.notify_one();
  return true;
}

void TaskPool::stop() {
  std::deque<Job> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    dropped.swap(jobs_);
  }
  changed_.notify_all();
  // Threads do not end on their own once stopping_ is set, so the list does not change here.
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  join_ended();
}

void TaskPool::work(std::list<std::thread>::iterator self) {
  std::function<void()> after;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_;
    if (after) {
      lock.unlock();
      std::exchange(after, {})();
      lock.lock();
    }
    const auto wanted = [this] { return !jobs_.empty() || stopping_; };
    if (!wanted() && threads_.size() <= permanent_) changed_.wait(lock, wanted);
    --idle_;
    if (stopping_) return;
    if (jobs_.empty()) {
      ended_.splice(ended_.end(), threads_, self);
      return;
    }
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.run();
    after = std::move(job.after);
    job = {};  // freed without the lock
    lock.lock();
  }
}

}  // namespace tapline
