#pragma once

#include <memory>
#include <string>

#include "engine/live_registry.h"
#include "engine/request.h"
#include "server-context.h"

namespace tapline {

/// What requests are turned into scheduler tasks with; constant once the model is loaded.
struct PrepareContext {
  const common_params& params;
  const server_context_meta& meta;
  const llama_vocab* vocab;
};

enum class Generation {
  kChat,
  kCompletion,
  kNative,  // llama-server's own /completion
  kInfill,  // a text between two others; the vocabulary must have the tokens for it
};

/// Turns a validated body into tasks: chat template, grammar, tokens, sampling parameters.
/// Throws std::exception with a sentence about the body when it cannot be done.
/// With `live` the tasks carry a live request, which `registry` knows before the scheduler sees them; it is
/// moved from.
PreparedTasks prepare_generation(const PrepareContext& context, server_queue& queue, Generation kind,
                                 const std::string& body, const std::shared_ptr<LivePlan>& live,
                                 LiveRegistry& registry);

/// Turns a validated body of `/v1/embeddings` into one task for each input. Throws std::exception with a
/// sentence about the body when it cannot be done.
PreparedTasks prepare_embeddings(const PrepareContext& context, server_queue& queue, const std::string& body);

/// Turns a validated body of `/v1/rerank` into one task for each document. Throws std::exception with a
/// sentence when the model is no reranker or something does not fit.
PreparedTasks prepare_rerank(const PrepareContext& context, const llama_model* model, server_queue& queue,
                             const std::string& body);

/// A task that asks the scheduler for something it knows: its counters, the slots, the adapters.
PreparedTasks prepare_question(server_queue& queue, server_task_type type);

}  // namespace tapline
