#include "engine/chat_session.h"

#include "engine/forced_tools.h"

namespace tapline {

#if TAPLINE_LLAMA_CPP >= 600

void ChatSession::open(const llama_vocab* vocab, json& body, const server_chat_params& chat, bool forced,
                       std::vector<raw_buffer>& files) {
  body = oaicompat_chat_params_parse(vocab, body, chat, files, session_);
  if (forced) grammar_ = without_prose(session_.grammar());
}

ThinkingTags ChatSession::thinking(const json&) const {
  return {session_.thinking_start_tag(), session_.thinking_end_tags(), session_.generation_prompt()};
}

void ChatSession::apply(const llama_vocab*, const json&, server_task& task) const {
  task.apply_chat_session(session_);
  if (!grammar_.empty()) task.params.sampling.grammar = {COMMON_GRAMMAR_TYPE_TOOL_CALLS, grammar_};
}

task_result_state ChatSession::state(const server_task&) const {
  return task_result_state(session_);
}

#else

void ChatSession::open(const llama_vocab*, json& body, const server_chat_params& chat, bool forced,
                       std::vector<raw_buffer>& files) {
  body = oaicompat_chat_params_parse(body, chat, files);
  if (forced) body["grammar"] = without_prose(json_value(body, "grammar", std::string()));
}

ThinkingTags ChatSession::thinking(const json& body) const {
  return {json_value(body, "reasoning_budget_start_tag", std::string()),
          json_value(body, "reasoning_budget_end_tags", std::vector<std::string>()),
          json_value(body, "generation_prompt", std::string())};
}

void ChatSession::apply(const llama_vocab* vocab, const json& body, server_task& task) const {
  auto delimiters = common_chat_msg_delimiters_parse(json_value(body, "message_delimiters", json::array()));
  delimiters.tokenize(vocab);
  task.params.message_spans = task.tokens.find_message_spans(delimiters);
}

task_result_state ChatSession::state(const server_task& task) const {
  return task.create_state();
}

#endif

}  // namespace tapline
