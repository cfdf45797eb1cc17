#include "engine/generation_loop.h"

#include <chrono>
#include <exception>
#include <utility>

#include "base/error.h"

namespace tapline {

namespace {
constexpr auto kRepeatTerminate = std::chrono::milliseconds(1);
}

struct GenerationLoop::Job {
  std::function<void()> work;
  bool taken = false;
  bool done = false;
  std::exception_ptr error = nullptr;
};

void GenerationLoop::run() {
  // However this ends, nobody may wait for a thread that is gone.
  struct Finish {
    GenerationLoop& loop;
    ~Finish() {
      const std::lock_guard<std::mutex> lock(loop.mutex_);
      loop.finished_ = true;
      loop.changed_.notify_all();
    }
  } finish{*this};

  for (;;) {
    std::shared_ptr<Job> job;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
      job.swap(job_);
      if (job) job->taken = true;
    }
    if (!job) {
      context_.start_loop();
      continue;
    }
    try {
      job->work();
    } catch (...) {
      job->error = std::current_exception();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      job->done = true;
      changed_.notify_all();
    }
  }
}

void GenerationLoop::run_between_iterations(const std::function<void()>& work, const CancelToken& cancel) {
  const auto job = std::make_shared<Job>(Job{work});
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !job_ || stopping_ || finished_; });
  if (stopping_ || finished_) throw Error(ErrorCode::kClosed, "The engine is closed.");
  job_ = job;
  while (!job->taken) {
    if (stopping_ || finished_ || cancel.cancelled()) {
      job_.reset();
      changed_.notify_all();
      cancel.check();
      throw Error(ErrorCode::kClosed, "The engine is closed.");
    }
    context_.terminate();
    changed_.wait_for(lock, kRepeatTerminate);
  }
  changed_.wait(lock, [&job] { return job->done; });
  if (job->error) std::rethrow_exception(job->error);
}

void GenerationLoop::stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  while (!finished_) {
    context_.terminate();
    changed_.wait_for(lock, kRepeatTerminate);
  }
}

}  // namespace tapline
