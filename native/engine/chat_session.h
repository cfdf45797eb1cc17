#pragma once

#include <string>
#include <vector>

#include "engine/thinking.h"
#include "server-common.h"
#include "server-task.h"

#ifndef TAPLINE_LLAMA_CPP
#error "CMakeLists.txt gives TAPLINE_LLAMA_CPP to the files that differ by llama.cpp's version."
#endif

namespace tapline {

/// Properties of an answer that a chat's template determines: thinking tags, message delimiters, grammar of
/// tool calls. llama-server stores them in the request's JSON, and since v0.6.0 in a separate object. Only
/// this class knows the difference. It is empty for requests that are not chats.
class ChatSession {
 public:
  /// Renders the messages in `body` as a prompt. `forced`: the answer must call a tool.
  void open(const llama_vocab* vocab, json& body, const server_chat_params& chat, bool forced,
            std::vector<raw_buffer>& files);

  /// `body` is the one that open() returned.
  ThinkingTags thinking(const json& body) const;

  /// Completes the parameters of a task, after its tokens and the parameters in `body` are set.
  void apply(const llama_vocab* vocab, const json& body, server_task& task) const;

  /// The initial state of a task's answer.
  task_result_state state(const server_task& task) const;

#if TAPLINE_LLAMA_CPP >= 600
 private:
  common_chat_session session_;
  std::string grammar_;  // of a forced call; empty: the session's grammar
#endif
};

}  // namespace tapline
