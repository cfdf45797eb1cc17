#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/task_pool.h"
#include "engine/request.h"
#include "server-queue.h"

namespace tapline {

/// Takes results from llama-server's response queue and delivers each to its request.
///
/// A few threads serve any number of requests: one waits for the queue, then passes that role on and formats
/// its result. llama-server's readers need a thread per request and notice a cancellation by polling once per
/// second; here it takes effect immediately.
class ResultRouter {
 public:
  ResultRouter(server_queue& tasks, server_response& results, size_t threads);
  ~ResultRouter();
  ResultRouter(const ResultRouter&) = delete;
  ResultRouter& operator=(const ResultRouter&) = delete;

  /// Queues the tasks of a request. `ids` names all of them, children included.
  void post(std::shared_ptr<Request> owner, const std::vector<int>& ids, std::vector<server_task>&& tasks);

  /// The requests' results are complete.
  void forget(const std::vector<int>& ids);

  /// Drops these results: releases the slots, or removes the tasks from the queue.
  void cancel(const std::vector<int>& ids);

  /// Joins the threads. Safe to call twice.
  void stop();

 private:
  struct Cancelled {
    int id;
    std::chrono::steady_clock::time_point again;
  };

  void work();
  void refresh();
  void wake();
  void post_cancel(const std::vector<int>& ids);
  void repeat_cancels();

  server_queue& tasks_;
  server_response& results_;
  const int wake_id_;
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;  // guards owners_, changed_, cancelled_
  std::unordered_map<int, std::shared_ptr<Request>> owners_;
  std::vector<std::pair<int, bool>> changes_;  // id, awaited or not: for the waiting thread
  std::deque<Cancelled> cancelled_;

  std::mutex leading_;               // held by the thread that waits in the queue
  std::unordered_set<int> awaited_;  // touched by that thread only

  const size_t n_threads_;
  TaskPool threads_;  // last: it uses all of the above
};

}  // namespace tapline
