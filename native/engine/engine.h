#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/cancel.h"
#include "base/counted.h"
#include "base/task_pool.h"
#include "engine/event.h"
#include "engine/generation_loop.h"
#include "engine/introspection.h"
#include "engine/live_registry.h"
#include "engine/options.h"
#include "engine/prepare.h"
#include "engine/request.h"
#include "engine/result_router.h"
#include "server-context.h"

namespace tapline {

/// llama.cpp's serving engine with one model loaded: continuous batching, prompt cache, grammars, tools.
///
/// Its threads: one that loads and generates, a few that prepare requests, a few that format results. None
/// waits for a single request, and only bookkeeping runs on the caller's thread.
class Engine : public Counted<Engine> {
 public:
  /// `stage` names what is being loaded; `fraction` is 0..1.
  using LoadProgress = std::function<void(const std::string& stage, double fraction)>;

  /// `deliver` receives the events of all requests; `failed` is called once if the scheduler dies.
  Engine(EngineOptions options, Deliver deliver, std::function<void(const std::string&)> failed);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Loads the model and starts serving; blocks. Throws kModelLoad with llama.cpp's reason.
  void load(const LoadProgress& progress);

  /// See describe_served().
  const std::string& info() const { return info_; }

  /// Starts a request with a body that TypeScript has validated. `live`: its edits and readings, only for
  /// routes that generate. Throws kUnsupportedArchitecture if live requests are impossible (`captures` in
  /// info()), and whatever check_live_plan() throws.
  RequestId open(Route route, std::string body, std::shared_ptr<LivePlan> live);
  void read(RequestId id);
  void cancel(RequestId id);

  /// See Introspection.
  CaptureResult capture(const CaptureRequest& request, const CancelToken& cancel);
  ServedForwardResult forward(ServedForwardRequest request, const CancelToken& cancel);
  ScoreResult score(const ScoreRequest& request, const CancelToken& cancel);
  std::optional<TwinReport> twin() { return introspection_.twin(); }

  /// Ends all requests, the threads and the model, in that order; blocks. Safe to call twice and from
  /// several threads. Waits for a running load: llama.cpp cannot interrupt it.
  void close();

 private:
  void generate();
  void serve(const std::shared_ptr<Request>& request, Route route, const std::string& body,
             const std::shared_ptr<LivePlan>& live);
  void call(const server_http_context::handler_t& handler, const std::shared_ptr<Request>& request,
            const std::string& body);

  const EngineOptions options_;
  const Deliver deliver_;
  const std::function<void(const std::string&)> failed_;

  // In order of construction; shutdown runs in reverse. The parameters outlive everything.
  common_params params_;
  std::unique_ptr<server_context> context_;
  std::unique_ptr<server_routes> routes_;
  std::unique_ptr<server_context_meta> meta_;
  llama_model* model_ = nullptr;
  std::string info_;
  LiveRegistry live_requests_;
  Introspection introspection_;
  GenerationLoop loop_;
  LoadProgress progress_;
  std::unique_ptr<server_response_reader> queues_;
  std::unique_ptr<ResultRouter> router_;
  std::unique_ptr<TaskPool> pool_;  // prepares requests, formats results on demand
  std::thread generation_thread_;

  enum class State { kNew, kLoading, kServing, kFailed };
  std::mutex state_mutex_;
  std::condition_variable state_changed_;
  State state_ = State::kNew;
  ErrorCode load_code_ = ErrorCode::kModelLoad;
  std::string load_error_;

  std::mutex requests_mutex_;
  RequestId next_id_ = 1;
  bool closing_ = false;
  std::unordered_map<RequestId, std::shared_ptr<Request>> requests_;

  std::mutex lifecycle_mutex_;  // held by load() and close(): each waits for the other
  bool closed_ = false;
};

}  // namespace tapline
