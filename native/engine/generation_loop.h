#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "base/cancel.h"
#include "server-context.h"

namespace tapline {

/// Drives llama-server's scheduler on the thread that calls run(), and lets other threads run a function on
/// that thread between two iterations.
///
/// server_context::terminate() makes start_loop() return after the current iteration with its queues and
/// slots intact, so the loop is left, the function runs, and the loop is entered again. A terminate() that
/// comes just before start_loop() is lost, so the waiting side repeats it until its function was taken.
class GenerationLoop {
 public:
  explicit GenerationLoop(server_context& context) : context_(context) {}

  /// Serves until stop(). Whatever the scheduler throws passes through.
  void run();

  /// Runs `work` on the generation thread and waits for it. `cancel` takes effect while it waits for its
  /// turn; once started it completes. Throws kCancelled, kClosed after stop(), or what `work` threw.
  void run_between_iterations(const std::function<void()>& work, const CancelToken& cancel);

  /// Ends run() after the current iteration.
  void stop();

 private:
  struct Job;

  server_context& context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Job> job_;
  bool stopping_ = false;
  bool finished_ = false;
};

}  // namespace tapline
