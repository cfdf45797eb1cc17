#pragma once

#include <memory>
#include <string>

#include "engine/live_registry.h"
#include "engine/request.h"
#include "server-context.h"

namespace tapline {

/// The inputs for making scheduler tasks of requests; constant once the model is loaded.
struct PrepareContext {
  const common_params& params;
  const server_context_meta& meta;
  const llama_vocab* vocab;
};

/// The kinds of requests. The first four generate text.
enum class Route {
  kChat,
  kCompletion,
  kNativeCompletion,  // llama-server's /completion
  kInfill,            // text between a prefix and a suffix; the vocabulary must have the tokens for it
  kRerank,
  kMetrics,
  kSlots,
  kAdapters,
  kProperties,
  kEmbeddings,
  kTokenize,
  kDetokenize,
  kApplyTemplate,
};

/// Turns a validated body into tasks: chat template, grammar, tokens, sampling parameters. Throws
/// std::exception with a sentence about the body if that is impossible. With `live`, which is moved from, the
/// tasks have a live request, which is in `registry` before the scheduler has them.
PreparedTasks prepare_generation(const PrepareContext& context, server_queue& queue, Route route,
                                 const std::string& body, const std::shared_ptr<LivePlan>& live,
                                 LiveRegistry& registry);

/// Turns a validated body of `/v1/embeddings` into one task per input. Throws std::exception with a sentence
/// about the body if that is impossible. `live` as for generation.
PreparedTasks prepare_embeddings(const PrepareContext& context, server_queue& queue, const std::string& body,
                                 const std::shared_ptr<LivePlan>& live, LiveRegistry& registry);

/// Turns a validated body of `/v1/rerank` into one task per document. Throws std::exception with a sentence
/// if the model is not a reranker or a text does not fit.
PreparedTasks prepare_rerank(const PrepareContext& context, const llama_model* model, server_queue& queue,
                             const std::string& body);

/// A task that queries the scheduler: its counters, the slots, the adapters.
PreparedTasks prepare_question(server_queue& queue, server_task_type type);

}  // namespace tapline
