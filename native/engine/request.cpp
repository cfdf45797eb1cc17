#include "engine/request.h"

#include <algorithm>
#include <utility>

#include "base/task_pool.h"
#include "engine/result_router.h"

namespace tapline {

namespace {

/// The most results in one event: enough to catch up, few enough to keep a stream smooth.
constexpr size_t kResultsPerEvent = 64;

constexpr const char* kJson = "application/json; charset=utf-8";

json metrics_json(const server_task_result_metrics& result) {
  const server_metrics& m = result.metrics;
  return json{
      {"busy_slots", result.n_processing_slots},
      {"deferred", result.n_tasks_deferred},
      {"prompt_tokens", m.prompt.count},
      {"prompt_us", m.prompt.time},
      {"cached_tokens", m.n_prompt_cached},
      {"generated_tokens", m.predict.count},
      {"generated_steps", m.predict.steps},
      {"generated_us", m.predict.time},
      {"decodes", m.n_decode},
  };
}

/// Adds the stop text that ended a completion under vLLM's name; OpenAI's answers do not contain it.
void add_stop_text(const server_task_result& result, json& answer) {
  const auto* last = dynamic_cast<const server_task_result_cmpl_final*>(&result);
  if (last == nullptr || last->stop != STOP_TYPE_WORD || last->stopping_word.empty()) return;
  const auto mark = [last](json& part) {
    if (!part.is_object() || !part.contains("choices") || part.at("choices").empty()) return false;
    json& choice = part["choices"][0];
    if (!choice.contains("finish_reason") || choice.at("finish_reason").is_null()) return false;
    choice["stop_reason"] = last->stopping_word;
    return true;
  };
  if (!answer.is_array()) {
    mark(answer);
    return;
  }
  for (size_t i = 0; i < answer.size(); ++i) {
    if (mark(answer[i])) return;
  }
}

}  // namespace

void Request::read() {
  Event event;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cancelled()) {
      event = failed_event(cancel_code_, cancel_sentence_);
    } else if (whole_ready_) {
      event = std::move(whole_);
    } else {
      reading_ = true;
      if (!mailbox_.empty() && !processing_) {
        processing_ = true;
        pool_.submit([self = shared_from_this()] { self->process(); });
      }
      return;
    }
  }
  deliver_(id_, std::move(event));
}

void Request::cancel(ErrorCode code, const std::string& sentence) {
  std::vector<int> ids;
  bool waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cancelled()) return;
    cancel_code_ = code;
    cancel_sentence_ = sentence;
    cancelled_.store(true);
    mailbox_.clear();
    ids.swap(ids_);
    waiting = std::exchange(reading_, false);
  }
  if (!ids.empty()) router_.cancel(ids);
  if (waiting) deliver_(id_, failed_event(code, sentence));
}

void Request::start(PreparedTasks&& prepared) {
  // Posting under the lock: a cancel() sees either no task or tasks that the queue already has.
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cancelled()) return;
  states_ = std::move(prepared.states);
  finals_.resize(states_.size());
  decoded_.resize(states_.size());
  tokens_.resize(states_.size());
  join_ = std::move(prepared.join);
  if (prepared.live) live_ = std::make_unique<LiveAnswer>(std::move(prepared.live), vocab_);
  stream_ = prepared.stream;
  end_marker_ = prepared.end_marker;
  completions_a_prompt_ = states_.size() / prepared.tasks.size();
  ids_ = prepared.ids;
  router_.post(shared_from_this(), ids_, std::move(prepared.tasks));
}

void Request::fail(const std::string& message, error_type type) {
  Event event;
  format_error(format_error_response(message, type), event);
  finish(std::move(event));
}

/// Ends the answer with an error: in its stream, or as the whole body.
void Request::format_error(const json& error, Event& event) const {
  event.done = true;
  if (stream_ && head_sent_) {
    event.data += format_oai_sse(json{{"error", error}});
    return;
  }
  event.status = json_value(error, "code", 500);
  event.content_type = kJson;
  event.data = safe_json_to_str(json{{"error", error}});
}

void Request::finish(Event&& event) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cancelled()) return;
    if (!reading_) {
      whole_ = std::move(event);
      whole_ready_ = true;
      return;
    }
    reading_ = false;
  }
  deliver_(id_, std::move(event));
}

bool Request::take(server_task_result_ptr result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cancelled()) return false;
  mailbox_.push_back(std::move(result));
  if (!reading_ || processing_) return false;
  processing_ = true;
  return true;
}

void Request::process() {
  std::vector<server_task_result_ptr> results;
  for (;;) {
    results.clear();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (cancelled() || !reading_ || mailbox_.empty()) {
        processing_ = false;
        return;
      }
      while (!mailbox_.empty() && results.size() < kResultsPerEvent) {
        results.push_back(std::move(mailbox_.front()));
        mailbox_.pop_front();
      }
    }
    Event event;
    bool ready = false;
    for (server_task_result_ptr& result : results) {
      ready = format(std::move(result), event) || ready;
      if (event.done) break;
    }
    if (event.done) end();
    if (!ready) continue;
    event.tokens = tokens_;
    std::fill(tokens_.begin(), tokens_.end(), 0);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!reading_) continue;  // cancelled in the meantime; its read has been answered
      reading_ = false;
    }
    deliver_(id_, std::move(event));
  }
}

/// Adds `result` to the event. Returns whether the event is ready to be delivered.
bool Request::format(server_task_result_ptr result, Event& event) {
  try {
    const std::string broken = live_ ? live_->failure() : "";
    if (result->is_error() || !broken.empty()) {
      format_error(
          broken.empty() ? result->to_json() : format_error_response(broken, ERROR_TYPE_INVALID_REQUEST),
          event);
      return true;
    }
    if (result->index < states_.size()) result->update(states_[result->index]);
    if (stream_) {
      format_stream(*result, event);
      return event.status != 0 || !event.data.empty() || event.done;
    }
    const size_t index = result->index;
    if (index >= finals_.size() || finals_[index]) return false;
    finals_[index] = std::move(result);
    if (++n_finals_ < finals_.size()) return false;
    format_whole(event);
    return true;
  } catch (const std::exception& error) {
    format_error(format_error_response(error.what(), ERROR_TYPE_SERVER), event);
    return true;
  }
}

void Request::format_stream(server_task_result& result, Event& event) {
  if (!head_sent_) {
    event.status = 200;
    event.content_type = "text/event-stream";
    event.stream = true;
    head_sent_ = true;
  }
  json part = result.to_json();
  add_stop_text(result, part);
  if (live_) {
    if (const auto* more = dynamic_cast<const server_task_result_cmpl_partial*>(&result)) {
      live_->add_tokens(part, result.index, more->n_decoded, more->tokens);
    } else if (const auto* last = dynamic_cast<const server_task_result_cmpl_final*>(&result)) {
      live_->finish(part, result.index, last->n_decoded, last->tokens);
      for (LiveStates& states : live_->take_states()) event.states.push_back(std::move(states));
    }
  }
  if (result.is_stop()) ++n_finals_;
  if (states_.size() > 1 && result.is_stop()) gather_usage(part, result.index);
  if (!part.is_null()) event.data += format_oai_sse(part);
  count_tokens(result);
  if (n_finals_ < states_.size() || !result.is_stop()) return;
  if (end_marker_) event.data += "data: [DONE]\n\n";
  event.done = true;
}

/// A part may contain several tokens: text is delayed while it could become a stop string.
void Request::count_tokens(const server_task_result& result) {
  if (result.index >= decoded_.size()) return;
  int decoded = 0;
  if (const auto* partial = dynamic_cast<const server_task_result_cmpl_partial*>(&result)) {
    decoded = partial->n_decoded;
  } else if (const auto* last = dynamic_cast<const server_task_result_cmpl_final*>(&result)) {
    decoded = last->n_decoded;
  }
  int& counted = decoded_[result.index];
  tokens_[result.index] += std::max(0, decoded - counted);
  counted = std::max(counted, decoded);
}

/// Usage counts every prompt once, however many answers it has, and every completion.
void Request::add_usage(const json& usage, size_t index) {
  usage_.completion += json_value(usage, "completion_tokens", 0);
  if (index % completions_a_prompt_ != 0) return;
  usage_.prompt += json_value(usage, "prompt_tokens", 0);
  usage_.cached += json_value(usage.at("prompt_tokens_details"), "cached_tokens", 0);
}

void Request::write_usage(json& usage) const {
  usage["prompt_tokens"] = usage_.prompt;
  usage["prompt_tokens_details"]["cached_tokens"] = usage_.cached;
  usage["completion_tokens"] = usage_.completion;
  usage["total_tokens"] = usage_.prompt + usage_.completion;
}

/// llama-server reports usage at the end of each answer; clients expect the usage of the whole request, once,
/// at the end.
void Request::gather_usage(json& part, size_t index) {
  json* with_usage = part.is_array() && part.size() > 0 ? &part.back() : &part;
  if (!with_usage->is_object() || !with_usage->contains("usage")) return;
  add_usage(with_usage->at("usage"), index);
  if (n_finals_ == states_.size()) {
    write_usage((*with_usage)["usage"]);
  } else if (part.is_array() && with_usage->contains("choices") && with_usage->at("choices").empty()) {
    part.erase(part.size() - 1);
  } else {
    with_usage->erase("usage");
  }
}

void Request::format_whole(Event& event) {
  event.status = 200;
  event.content_type = kJson;
  event.done = true;
  for (const server_task_result_ptr& result : finals_) {
    const auto* last = dynamic_cast<const server_task_result_cmpl_final*>(result.get());
    if (last == nullptr) continue;
    count_tokens(*last);
    event.times.push_back({last->stats.t_prompt_ms(), last->stats.t_gen_ms()});
  }
  if (const auto* metrics = dynamic_cast<const server_task_result_metrics*>(finals_[0].get())) {
    event.data = safe_json_to_str(metrics_json(*metrics));
    return;
  }
  if (join_) {
    json results = json::array();
    for (const server_task_result_ptr& result : finals_) results.push_back(result->to_json());
    event.data = safe_json_to_str(join_(results));
    return;
  }
  json answer = answer_of(0);
  if (finals_.size() > 1) {
    // One OpenAI answer with all choices.
    add_usage(answer.at("usage"), 0);
    for (size_t i = 1; i < finals_.size(); ++i) {
      const json more = answer_of(i);
      answer["choices"].push_back(more.at("choices").at(0));
      add_usage(more.at("usage"), i);
    }
    write_usage(answer["usage"]);
  }
  if (live_) event.states = live_->take_states();
  event.data = safe_json_to_str(answer);
}

json Request::answer_of(size_t index) {
  json answer = finals_[index]->to_json();
  add_stop_text(*finals_[index], answer);
  if (live_) {
    const auto& last = dynamic_cast<const server_task_result_cmpl_final&>(*finals_[index]);
    live_->finish(answer, index, last.n_decoded, last.tokens);
  }
  return answer;
}

/// The last result has been formatted.
void Request::end() {
  if (std::exchange(ended_, true)) return;
  std::vector<int> ids;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ids.swap(ids_);
    mailbox_.clear();
  }
  if (ids.empty()) return;
  if (n_finals_ == states_.size()) {
    router_.forget(ids);
  } else {
    router_.cancel(ids);  // one task failed: its siblings need not continue
  }
}

}  // namespace tapline
