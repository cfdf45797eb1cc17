#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "base/cancel.h"
#include "server-context.h"
#include "server-queue.h"

namespace tapline {

/// Drives llama-server's scheduler on the thread that calls run(), and lets other threads run a function on
/// that thread between two iterations: at most one before each, so that whatever is being generated advances
/// by a whole iteration between two such functions, however fast they come.
class GenerationLoop {
 public:
  explicit GenerationLoop(server_context& context);

  /// Serves until stop(). Once, after the model was loaded. Whatever the scheduler throws passes through.
  void run();

  /// Runs `work` on the generation thread and waits for it. `cancel` takes effect while it waits for its
  /// turn; once started it completes. Throws kCancelled, kClosed after stop(), or what `work` threw.
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
