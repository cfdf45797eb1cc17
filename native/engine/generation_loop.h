#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "base/cancel.h"
#include "server-context.h"
#include "server-queue.h"

namespace tapline {

/// Drives llama-server's scheduler on the thread that calls run(), and lets other threads run functions on
/// that thread between two iterations: at most one before each iteration, so that generation always makes
/// progress.
class GenerationLoop {
 public:
  explicit GenerationLoop(server_context& context);

  /// Serves until stop(). Call once, after the model is loaded. Exceptions of the scheduler pass through.
  void run();

  /// Runs `work` on the generation thread and waits for it. `cancel` takes effect before it starts. Throws
  /// kCancelled, kClosed after stop(), or the exception of `work`.
  void run_between_iterations(const std::function<void()>& work, const CancelToken& cancel);

  /// Ends run() after the current iteration.
  void stop();

 private:
  struct Job;

  void take_job();
  void wake();

  server_context& context_;
  server_queue& queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Job> job_;
  bool stopping_ = false;
  bool finished_ = false;
};

}  // namespace tapline
