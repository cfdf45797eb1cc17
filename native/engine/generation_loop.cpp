#include "engine/generation_loop.h"

#include <chrono>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/reveal.h"

namespace tapline {

namespace {

constexpr auto kRepeatTerminate = std::chrono::milliseconds(1);
/// Polling interval for cancellation of a waiting job, which does not wake its thread.
constexpr auto kLookForCancel = std::chrono::milliseconds(10);

}  // namespace

// The queue calls one function per iteration, which llama-server sets when the model is loaded and which only
// the queue can read. Leaving start_loop() between two iterations would not need this access, but terminate()
// could then precede the first iteration after a capture, and consecutive captures could block everything
// else. Not in the anonymous namespace: an explicit instantiation belongs to its template's namespace.
struct IterationKey {
  using Member = std::function<void()> server_queue::*;
  friend Member reveal(IterationKey);
};
template struct Reveal<IterationKey, &server_queue::callback_update_slots>;

struct GenerationLoop::Job {
  std::function<void()> work;
  bool taken = false;
  bool done = false;
  std::exception_ptr error = nullptr;
};

GenerationLoop::GenerationLoop(server_context& context)
    : context_(context), queue_(context.get_response_reader().queue_tasks) {}

void GenerationLoop::run() {
  // However this ends, no thread may keep waiting for this one.
  struct Finish {
    GenerationLoop& loop;
    ~Finish() {
      const std::lock_guard<std::mutex> lock(loop.mutex_);
      loop.finished_ = true;
      loop.changed_.notify_all();
    }
  } finish{*this};

  queue_.on_update_slots([this, iterate = queue_.*reveal(IterationKey())] {
    take_job();
    iterate();
  });
  context_.start_loop();
}

/// On the generation thread, before an iteration.
void GenerationLoop::take_job() {
  std::shared_ptr<Job> job;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!job_ || stopping_) return;
    job.swap(job_);
    job->taken = true;
  }
  try {
    job->work();
  } catch (...) {
    job->error = std::current_exception();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  job->done = true;
  changed_.notify_all();
}

/// An idle scheduler iterates once per task, even for an empty one.
void GenerationLoop::wake() {
  server_task task(SERVER_TASK_TYPE_NEXT_RESPONSE);
  task.id = queue_.get_new_id();
  queue_.post(std::move(task));
}

void GenerationLoop::run_between_iterations(const std::function<void()>& work, const CancelToken& cancel) {
  const auto job = std::make_shared<Job>(Job{work});
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !job_ || stopping_ || finished_; });
  if (stopping_ || finished_) throw Error(ErrorCode::kClosed, "The engine is closed.");
  job_ = job;
  wake();
  while (!job->taken) {
    if (stopping_ || finished_ || cancel.cancelled()) {
      job_.reset();
      changed_.notify_all();
      cancel.check();
      throw Error(ErrorCode::kClosed, "The engine is closed.");
    }
    changed_.wait_for(lock, kLookForCancel);
  }
  changed_.wait(lock, [&job] { return job->done; });
  if (job->error) std::rethrow_exception(job->error);
}

void GenerationLoop::stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  while (!finished_) {
    context_.terminate();  // has no effect just before start_loop()
    changed_.wait_for(lock, kRepeatTerminate);
  }
}

}  // namespace tapline
