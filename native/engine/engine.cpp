#include "engine/engine.h"

#include <algorithm>
#include <clocale>
#include <utility>
#include <vector>

#include "base/log.h"
#include "chat.h"
#include "engine/live_check.h"
#include "engine/served_model.h"
#include "engine/server_slots.h"
#include "log.h"
#include "model/model.h"

namespace tapline {

namespace {

size_t cores() {
  return std::max<size_t>(2, std::thread::hardware_concurrency());
}

/// The library's log would block inference once its queue of 512 lines is full and stderr is not read.
void silence_common_log() {
  common_log_set_verbosity_thold(-1);
}

}  // namespace

Engine::Engine(EngineOptions options, Deliver deliver, std::function<void(const std::string&)> failed)
    : options_(std::move(options)),
      deliver_([this, deliver = std::move(deliver)](RequestId id, Event&& event) {
        if (event.done) {
          const std::lock_guard<std::mutex> lock(requests_mutex_);
          requests_.erase(id);
        }
        deliver(id, std::move(event));
      }),
      failed_(std::move(failed)),
      context_((silence_common_log(), std::make_unique<server_context>())),
      loop_(*context_) {}

Engine::~Engine() {
  close();
}

void Engine::load(const LoadProgress& progress) {
  const std::lock_guard<std::mutex> lifecycle(lifecycle_mutex_);
  if (closed_) throw Error(ErrorCode::kClosed, "The engine is closed.");
  std::setlocale(LC_NUMERIC, "C");
  start_backends();
  params_ = engine_params(options_);
  progress_ = progress;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    state_ = State::kLoading;
  }
  generation_thread_ = std::thread([this] { generate(); });

  std::unique_lock<std::mutex> lock(state_mutex_);
  state_changed_.wait(lock, [this] { return state_ != State::kLoading; });
  progress_ = nullptr;
  if (state_ == State::kFailed) throw Error(load_code_, load_error_);

  queues_ = std::make_unique<server_response_reader>(context_->get_response_reader());
  router_ = std::make_unique<ResultRouter>(queues_->queue_tasks, queues_->queue_results,
                                           std::min<size_t>(4, cores()));
  const int asked = options_.request_threads;
  const size_t threads = asked > 0 ? static_cast<size_t>(asked) : std::min<size_t>(8, cores());
  pool_ = std::make_unique<TaskPool>(threads, threads);
}

/// The generation thread: loads the model, then serves until the loop is stopped.
void Engine::generate() {
  const auto fail = [this](ErrorCode code, const std::string& sentence) {
    {
      const std::lock_guard<std::mutex> lock(state_mutex_);
      state_ = State::kFailed;
      load_code_ = code;
      load_error_ = sentence;
    }
    state_changed_.notify_all();
  };
  try {
    const ErrorLogScope log;
    routes_ = std::make_unique<server_routes>(params_, *context_);
    context_->set_state_callback([this](server_state state, json payload) {
      if (state != SERVER_STATE_LOADING || !progress_ || !payload.contains("value")) return;
      progress_(json_value(payload, "current", std::string("model")), json_value(payload, "value", 0.0));
    });
    // Fitting a model to devices swaps the log; set_device_options() decides whether it is fitted.
    std::unique_lock<std::mutex> swapping(log_swap_mutex(), std::defer_lock);
    if (params_.fit_params) swapping.lock();
    const bool loaded = context_->load_model(params_);
    if (swapping.owns_lock()) swapping.unlock();
    if (!loaded) {
      const std::string reason = log.first_line();
      const std::string encoder =
          options_.mmproj.empty() ? "" : " with the image encoder \"" + options_.mmproj + "\"";
      fail(ErrorCode::kModelLoad, "\"" + options_.path + "\" could not be loaded" + encoder +
                                      (reason.empty() ? std::string(".") : ": " + reason));
      return;
    }
    check_weights(llama_get_model(context_->get_llama_context()), options_.path);
    check_slots(llama_get_model(context_->get_llama_context()), options_.path, params_.n_parallel);
    routes_->update_meta(*context_);
    meta_ = std::make_unique<server_context_meta>(context_->get_meta());
    model_ = const_cast<llama_model*>(llama_get_model(context_->get_llama_context()));
    keep_slots_together(*context_);
    introspection_.open(*context_, options_, params_, meta_->slot_n_ctx, live_requests_);
    info_ = describe_served(*meta_, model_, params_, introspection_);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, "There is not enough memory for this model and its context.");
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return fail(ErrorCode::kModelLoad, "\"" + options_.path + "\" could not be loaded: " + error.what());
  }
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    state_ = State::kServing;
  }
  state_changed_.notify_all();
  try {
    loop_.run();
  } catch (const std::exception& error) {
    failed_(error.what());
  } catch (...) {
    failed_("The scheduler ended for an unknown reason.");
  }
}

CaptureResult Engine::capture(const CaptureRequest& request, const CancelToken& cancel) {
  return introspection_.capture(loop_, request, cancel);
}

ServedForwardResult Engine::forward(ServedForwardRequest request, const CancelToken& cancel) {
  return introspection_.forward(loop_, std::move(request), cancel);
}

ScoreResult Engine::score(const ScoreRequest& request, const CancelToken& cancel) {
  return introspection_.score(loop_, request, cancel);
}

RequestId Engine::open(Route route, std::string body, std::shared_ptr<LivePlan> live) {
  std::shared_ptr<Request> request;
  RequestId id;
  {
    const std::lock_guard<std::mutex> lock(requests_mutex_);
    id = next_id_++;
    if (closing_) return id;  // read() reports it
    if (live) {
      if (!introspection_.supported())
        throw Error(ErrorCode::kUnsupportedArchitecture, introspection_.reason());
      check_live_plan(*live, introspection_.stream(), llama_model_n_layer(model_),
                      static_cast<size_t>(llama_model_n_embd(model_)));
    }
    request = std::make_shared<Request>(id, deliver_, *pool_, *router_, llama_model_get_vocab(model_));
    requests_.emplace(id, request);
  }
  pool_->submit([this, request, route, body = std::move(body), live = std::move(live)] {
    if (request->cancelled()) return;
    try {
      serve(request, route, body, live);
    } catch (const std::bad_alloc&) {
      request->fail("There is not enough memory for this request.", ERROR_TYPE_UNAVAILABLE);
    } catch (const std::exception& error) {
      // Errors of the engine arrive as results; exceptions here are about the body.
      request->fail(error.what(), ERROR_TYPE_INVALID_REQUEST);
    }
  });
  return id;
}

void Engine::serve(const std::shared_ptr<Request>& request, Route route, const std::string& body,
                   const std::shared_ptr<LivePlan>& live) {
  const PrepareContext context{params_, *meta_, llama_model_get_vocab(model_)};
  server_queue& queue = queues_->queue_tasks;
  switch (route) {
    case Route::kChat:
    case Route::kCompletion:
    case Route::kNativeCompletion:
    case Route::kInfill:
      return request->start(prepare_generation(context, queue, route, body, live, live_requests_));
    case Route::kRerank:
      return request->start(prepare_rerank(context, model_, queue, body));
    case Route::kMetrics:
      return request->start(prepare_question(queue, SERVER_TASK_TYPE_METRICS));
    case Route::kSlots:
      return request->start(prepare_question(queue, SERVER_TASK_TYPE_SLOT_GET));
    case Route::kAdapters:
      return request->start(prepare_question(queue, SERVER_TASK_TYPE_GET_LORA));
    case Route::kProperties:
      return call(routes_->get_props, request, body);
    case Route::kEmbeddings:
      return request->start(prepare_embeddings(context, queue, body, live, live_requests_));
    case Route::kTokenize:
      return call(routes_->post_tokenize, request, body);
    case Route::kDetokenize:
      return call(routes_->post_detokenize, request, body);
    case Route::kApplyTemplate:
      return call(routes_->post_apply_template, request, body);
  }
}

/// Answers with a handler of llama-server that does not compute on the model.
void Engine::call(const server_http_context::handler_t& handler, const std::shared_ptr<Request>& request,
                  const std::string& body) {
  // The handler may use both until its response is destroyed. Cancellation latches.
  const std::function<bool()> should_stop = [request] { return request->cancelled(); };
  const server_http_req http{{}, {}, "", "", body, {}, should_stop};
  const server_http_res_ptr response = handler(http);
  Event event;
  event.status = response->status;
  event.content_type = response->content_type;
  event.data = response->data;
  event.done = true;
  response->on_complete();
  request->finish(std::move(event));
}

void Engine::read(RequestId id) {
  std::shared_ptr<Request> request;
  bool closing;
  {
    const std::lock_guard<std::mutex> lock(requests_mutex_);
    const auto found = requests_.find(id);
    if (found != requests_.end()) request = found->second;
    closing = closing_;
  }
  if (request) {
    request->read();
    return;
  }
  // Readers stop after the last part, so this request was cancelled between two reads.
  deliver_(id, closing ? failed_event(ErrorCode::kClosed, "The engine is closed.")
                       : failed_event(ErrorCode::kCancelled, "The request was cancelled."));
}

void Engine::cancel(RequestId id) {
  std::shared_ptr<Request> request;
  {
    const std::lock_guard<std::mutex> lock(requests_mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return;
    request = found->second;
    requests_.erase(found);
  }
  request->cancel(ErrorCode::kCancelled, "The request was cancelled.");
}

void Engine::close() {
  const std::lock_guard<std::mutex> lifecycle(lifecycle_mutex_);
  if (closed_) return;
  closed_ = true;
  std::vector<std::shared_ptr<Request>> open;
  {
    const std::lock_guard<std::mutex> lock(requests_mutex_);
    closing_ = true;
    for (const auto& entry : requests_) open.push_back(entry.second);
  }
  for (const auto& request : open) request->cancel(ErrorCode::kClosed, "The engine is closed.");
  if (pool_) pool_->stop();
  if (router_) router_->stop();
  if (generation_thread_.joinable()) {
    if (state_ == State::kServing) loop_.stop();
    generation_thread_.join();
  }
  open.clear();
  {
    const std::lock_guard<std::mutex> lock(requests_mutex_);
    requests_.clear();
  }
  router_.reset();
  queues_.reset();
  meta_.reset();
  routes_.reset();
  introspection_.close();
  context_.reset();
  model_ = nullptr;
}

}  // namespace tapline
