#include "engine/prepare.h"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include "engine/chat_session.h"
#include "engine/options.h"
#include "mtmd-helper.h"
#include "server-schema.h"

namespace tapline {

namespace {

void collect(const server_task& task, PreparedTasks& prepared, const ChatSession& chat = {}) {
  prepared.ids.push_back(task.id);
  prepared.states.push_back(chat.state(task));
}

/// The next task of a request, without its input.
server_task next_task(server_queue& queue, server_task_type type, const PreparedTasks& prepared) {
  server_task task(type);
  task.id = queue.get_new_id();
  task.index = prepared.states.size();
  return task;
}

void add(server_task&& task, PreparedTasks& prepared) {
  collect(task, prepared);
  prepared.tasks.push_back(std::move(task));
}

/// In a server with an image encoder, slots compare their tokens only with lists that may contain images.
server_tokens for_slots(const PrepareContext& context, server_tokens tokens) {
  return context.meta.has_mtmd ? server_tokens(tokens.get_tokens(), true) : std::move(tokens);
}

/// Prompts that are texts or tokens, without images.
std::vector<server_tokens> tokenize_prompts(const PrepareContext& context, const json& prompts) {
  std::vector<server_tokens> all =
      tokenize_input_prompts(context.vocab, nullptr, prompts, true, true, mtmd_helper_init_opt_default());
  for (server_tokens& tokens : all) tokens = for_slots(context, std::move(tokens));
  return all;
}

/// Whether the plan changes or watches rows of the prompt before its last one, which must then be computed.
bool needs_whole_prompt(const LivePlan& plan, int32_t n_prompt) {
  if (plan.watch.reads_rows() && plan.watch.positions.first_in_prompt(n_prompt) < n_prompt - 1) return true;
  return std::any_of(plan.edits.begin(), plan.edits.end(), [n_prompt](const Edit& edit) {
    return edit.positions.first_in_prompt(n_prompt) < n_prompt - 1;
  });
}

/// Connects the tasks of a request to its plan, before the scheduler has them.
void attach_live(LivePlan&& plan, PreparedTasks& prepared, LiveRegistry& registry) {
  prepared.live = std::make_shared<LiveRequest>(std::move(plan), prepared.states.size());
  for (server_task& task : prepared.tasks) {
    const LivePlan& made = prepared.live->plan;
    // Both requests of a pair compute their whole prompt, whatever is cached in their slots.
    if (made.pair || needs_whole_prompt(made, task.n_tokens())) task.params.cache_prompt = false;
    const auto attach = [&](server_task& completion) {
      completion.params.return_tokens = true;
      prepared.live->set_prompt(completion.index, task.n_tokens(), task.index);
      registry.add(completion.id, prepared.live, completion.index);
    };
    attach(task);
    for (server_task& child : task.child_tasks) attach(child);
  }
}

/// Throws if the request selects thinking positions and the template does not support thinking.
void check_thinking(const LivePlan& plan) {
  if ((plan.thinking.start.empty() || plan.thinking.ends.empty()) &&
      plan.needs_part(Positions::Part::kThinking))
    throw std::invalid_argument("tapline: positions thinking: this model's chat template has no thinking.");
}

/// The prompt's length is known here, so range ends that count from different sides can be compared.
void check_ranges(const LivePlan& plan, int32_t n_prompt) {
  const auto check = [n_prompt](const Positions& positions) {
    const Positions::Range* range = positions.reversed(n_prompt);
    if (!range) return;
    const auto text = [](int32_t index) { return std::to_string(index); };
    throw std::invalid_argument("tapline: positions [" + text(range->first) + ", " + text(range->last) +
                                "] of a prompt of " + text(n_prompt) + " tokens begin at token " +
                                text(Positions::from_start(range->first, n_prompt)) + " and end at token " +
                                text(Positions::from_start(range->last, n_prompt)) + ", before they begin.");
  };
  for (const Edit& edit : plan.edits) check(edit.positions);
  check(plan.watch.positions);
}

/// Both requests of a pair draw the same random numbers: an unspecified seed is chosen here, once.
void choose_seed(json& data) {
  if (json_value(data, "seed", LLAMA_DEFAULT_SEED) == LLAMA_DEFAULT_SEED)
    data["seed"] = static_cast<uint32_t>(std::random_device()()) >> 1;
}

task_response_type response_type(Route route) {
  if (route == Route::kChat) return TASK_RESPONSE_TYPE_OAI_CHAT;
  return route == Route::kCompletion ? TASK_RESPONSE_TYPE_OAI_CMPL : TASK_RESPONSE_TYPE_NONE;
}

/// Puts the tokens of prefix, suffix and context into `data.prompt`.
void build_infill_prompt(const PrepareContext& context, json& data) {
  std::string missing;
  if (llama_vocab_fim_pre(context.vocab) == LLAMA_TOKEN_NULL) missing += " prefix";
  if (llama_vocab_fim_suf(context.vocab) == LLAMA_TOKEN_NULL) missing += " suffix";
  if (llama_vocab_fim_mid(context.vocab) == LLAMA_TOKEN_NULL) missing += " middle";
  if (!missing.empty())
    throw std::invalid_argument("This model cannot fill in: its vocabulary has no token for" + missing + ".");
  const llama_tokens prompt =
      tokenize_mixed(context.vocab, json_value(data, "prompt", std::string()), false, true);
  data["prompt"] = format_prompt_infill(
      context.vocab, data.at("input_prefix"), data.at("input_suffix"),
      json_value(data, "input_extra", json::array()), context.params.n_batch,
      json_value(data, "n_predict", json_value(data, "max_tokens", context.params.n_predict)),
      context.meta.slot_n_ctx, context.params.spm_infill, prompt);
}

}  // namespace

PreparedTasks prepare_generation(const PrepareContext& context, server_queue& queue, Route route,
                                 const std::string& body, const std::shared_ptr<LivePlan>& live,
                                 LiveRegistry& registry) {
  json data = json::parse(body);
  std::vector<raw_buffer> files;
  ChatSession chat;
  if (route == Route::kChat) {
    const bool forced = json_value(data, "tool_choice", std::string()) == "required";
    chat.open(context.vocab, data, context.meta.chat_params, forced, files);
  } else if (route == Route::kInfill) {
    build_infill_prompt(context, data);
  }

  // Images are encoded on the generation thread, which has the encoder; it also makes the tokens.
  const bool images = !files.empty();
  std::vector<server_tokens> prompts(1);
  if (!images) prompts = tokenize_prompts(context, data.at("prompt"));

  PreparedTasks prepared;
  prepared.stream = json_value(data, "stream", false);
  if (response_type(route) == TASK_RESPONSE_TYPE_NONE) {
    prepared.end_marker = false;
    prepared.join = [](const json& results) { return results.size() == 1 ? results.at(0) : results; };
  }
  const std::string completion_id = gen_chatcmplid();
  if (live) {
    live->thinking = chat.thinking(data);
    check_thinking(*live);
  }
  const bool pair = live && live->pair;
  if (pair) {
    choose_seed(data);
    const size_t count = prompts.size();
    for (size_t i = 0; i < count; ++i) prompts.push_back(prompts[i].clone());
  }
  for (server_tokens& prompt : prompts) {
    const bool infill = route == Route::kInfill;
    server_task task =
        next_task(queue, infill ? SERVER_TASK_TYPE_INFILL : SERVER_TASK_TYPE_COMPLETION, prepared);
    if (live) check_ranges(*live, static_cast<int32_t>(prompt.size()));
    task.tokens = std::move(prompt);
    if (images) {  // one answer, as TypeScript ensures: children would copy the missing tokens
      task.cli = true;
      task.cli_prompt = data.at("prompt").get<std::string>();
      task.cli_files = std::move(files);
    }
    task.params = server_schema::eval_llama_cmpl_schema(context.vocab, context.params,
                                                        context.meta.logit_bias_eog, data);
    chat.apply(context.vocab, data, task);
    task.params.res_type = response_type(route);
    task.params.oaicompat_cmpl_id = completion_id;
    task.params.oaicompat_model = context.meta.model_name;
    task.id_slot = pair ? -1 : json_value(data, "id_slot", -1);
    collect(task, prepared, chat);
    for (int i = 1; i < task.params.n_cmpl; ++i) {
      task.add_child(task.id, queue.get_new_id());
      task.child_tasks.back().index = prepared.states.size();
      collect(task.child_tasks.back(), prepared, chat);
    }
    prepared.tasks.push_back(std::move(task));
  }
  if (prepared.tasks.empty()) throw std::invalid_argument("The prompt is empty.");
  if (live) attach_live(std::move(*live), prepared, registry);
  return prepared;
}

PreparedTasks prepare_embeddings(const PrepareContext& context, server_queue& queue, const std::string& body,
                                 const std::shared_ptr<LivePlan>& live, LiveRegistry& registry) {
  if (context.meta.pooling_type == LLAMA_POOLING_TYPE_NONE)
    throw std::invalid_argument("This model has no embedding of a whole text: its pooling type is none.");
  if (context.meta.pooling_type == LLAMA_POOLING_TYPE_RANK)
    throw std::invalid_argument("This model has no embeddings: its pooling type is rank; ask /v1/rerank.");
  const json data = json::parse(body);
  std::vector<server_tokens> inputs = tokenize_prompts(context, data.at("input"));
  PreparedTasks prepared;
  for (server_tokens& input : inputs) {
    // Tokenizers without special tokens return no tokens for an empty text.
    if (input.empty()) throw std::invalid_argument("The input is empty.");
    server_task task = next_task(queue, SERVER_TASK_TYPE_EMBEDDING, prepared);
    if (live) check_ranges(*live, static_cast<int32_t>(input.size()));
    task.tokens = std::move(input);
    task.params.res_type = TASK_RESPONSE_TYPE_OAI_EMBD;
    task.params.embd_normalize = json_value(data, "embd_normalize", context.params.embd_normalize);
    add(std::move(task), prepared);
  }
  const bool base64 = json_value(data, "encoding_format", std::string("float")) == "base64";
  const char* pooling = pooling_name(context.meta.pooling_type);
  prepared.join = [model = context.meta.model_name, base64, pooling](const json& results) {
    json answer = format_embeddings_response_oaicompat(json::object(), model, results, base64);
    answer["pooling"] = pooling;
    return answer;
  };
  if (live) {
    live->embeds = true;
    attach_live(std::move(*live), prepared, registry);
  }
  return prepared;
}

PreparedTasks prepare_rerank(const PrepareContext& context, const llama_model* model, server_queue& queue,
                             const std::string& body) {
  if (!context.params.embedding || context.meta.pooling_type != LLAMA_POOLING_TYPE_RANK)
    throw std::invalid_argument("This model cannot rerank; serve a reranker with --pooling rank.");
  const json data = json::parse(body);
  const std::string query = data.at("query");
  auto documents = data.at("documents").get<std::vector<std::string>>();
  PreparedTasks prepared;
  for (const std::string& document : documents) {
    server_task task = next_task(queue, SERVER_TASK_TYPE_RERANK, prepared);
    task.tokens = for_slots(context, format_prompt_rerank(model, context.vocab, nullptr, query, document,
                                                          mtmd_helper_init_opt_default()));
    add(std::move(task), prepared);
  }
  const int top_n = json_value(data, "top_n", static_cast<int>(documents.size()));
  prepared.join = [data, model = context.meta.model_name, documents = std::move(documents),
                   top_n](const json& results) mutable {
    return format_response_rerank(data, model, results, /*is_tei_format=*/false, documents, top_n);
  };
  return prepared;
}

PreparedTasks prepare_question(server_queue& queue, server_task_type type) {
  PreparedTasks prepared;
  add(next_task(queue, type, prepared), prepared);
  if (type != SERVER_TASK_TYPE_METRICS) prepared.join = [](const json& results) { return results.at(0); };
  return prepared;
}

}  // namespace tapline
