#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/event.h"
#include "engine/live_answer.h"
#include "server-task.h"

namespace tapline {

class ResultRouter;
class TaskPool;

/// The tasks of one request, ready for the scheduler.
struct PreparedTasks {
  std::vector<server_task> tasks;
  std::vector<int> ids;                   // every task and child task
  std::vector<task_result_state> states;  // by result index
  bool stream = false;
  std::shared_ptr<LiveRequest> live;      // the request's edits and readings; may be null
  bool end_marker = true;                 // OpenAI's streams end with [DONE], llama-server's do not
  std::function<json(const json&)> join;  // makes one answer of all results; empty: completions
};

/// One request on its way through the engine.
///
/// Results wait in a mailbox as the scheduler made them until JavaScript asks for the next part; only then
/// are all of them parsed and formatted together, on an engine thread. So a slow reader costs no more than
/// the tokens of its generation, and no thread ever waits for one request.
class Request : public std::enable_shared_from_this<Request> {
 public:
  Request(RequestId id, const Deliver& deliver, TaskPool& pool, ResultRouter& router,
          const llama_vocab* vocab)
      : id_(id), deliver_(deliver), pool_(pool), router_(router), vocab_(vocab) {}

  /// Requests the next event; exactly one is delivered per call. One call at a time.
  void read();

  /// Frees the request's slot and fails a waiting read. Latches.
  void cancel(ErrorCode code, const std::string& sentence);
  bool cancelled() const { return cancelled_.load(); }

  /// Passes the tasks to the scheduler, unless the request has been cancelled.
  void start(PreparedTasks&& prepared);

  /// Ends the request with a whole answer, or with an error as one.
  void finish(Event&& event);
  void fail(const std::string& message, error_type type);

  /// Takes a result from the router. True: the caller must call process() next, without locks.
  bool take(server_task_result_ptr result);
  void process();

 private:
  bool format(server_task_result_ptr result, Event& event);
  void format_error(const json& error, Event& event) const;
  void format_stream(server_task_result& result, Event& event);
  void format_whole(Event& event);
  json answer_of(size_t index);
  void count_tokens(const server_task_result& result);
  void add_usage(const json& usage, size_t index);
  void write_usage(json& usage) const;
  void gather_usage(json& part, size_t index);
  void end();

  const RequestId id_;
  const Deliver& deliver_;
  TaskPool& pool_;
  ResultRouter& router_;
  const llama_vocab* const vocab_;
  std::atomic<bool> cancelled_{false};

  std::mutex mutex_;
  std::deque<server_task_result_ptr> mailbox_;
  std::vector<int> ids_;
  bool reading_ = false;     // a read waits for its event
  bool processing_ = false;  // one thread formats at a time
  bool whole_ready_ = false;
  Event whole_;
  ErrorCode cancel_code_ = ErrorCode::kCancelled;
  std::string cancel_sentence_;

  // Touched only by the thread that has set processing_.
  std::vector<task_result_state> states_;
  std::vector<server_task_result_ptr> finals_;
  std::vector<int> decoded_;  // tokens generated so far, by result index
  std::vector<int> tokens_;   // of these, not yet reported in an event
  struct {
    int prompt = 0;
    int cached = 0;
    int completion = 0;
  } usage_;  // of all answers that have ended
  size_t n_finals_ = 0;
  size_t completions_a_prompt_ = 1;
  std::function<json(const json&)> join_;
  std::unique_ptr<LiveAnswer> live_;
  bool stream_ = false;
  bool end_marker_ = true;
  bool head_sent_ = false;
  bool ended_ = false;
};

}  // namespace tapline
