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

/// What a chat's template says of its answer: where thinking begins, how messages are told apart, which
/// grammar calls of tools have. llama-server keeps that in the request's JSON, and from v0.6.0 on in an
/// object of its own; nothing else of tapline knows which. Without a chat it says nothing.
class ChatSession {
 public:
  /// Makes a prompt of the messages in `body`. `forced`: the answer has to call a tool.
  void open(const llama_vocab* vocab, json& body, const server_chat_params& chat, bool forced,
            std::vector<raw_buffer>& files);

  /// Of a body that open() has seen.
  ThinkingTags thinking(const json& body) const;

  /// Completes the parameters of a task, once its tokens and those that `body` names are there.
  void apply(const llama_vocab* vocab, const json& body, server_task& task) const;

  /// Where the answer of a task will be put together.
  task_result_state state(const server_task& task) const;

#if TAPLINE_LLAMA_CPP >= 600
 private:
  common_chat_session session_;
  std::string grammar_;  // of a forced call; empty: the session's own
#endif
};

}  // namespace tapline
