#include "engine/prepare.h"

#include <stdexcept>
#include <utility>

#include "mtmd-helper.h"
#include "server-schema.h"

namespace tapline {

namespace {

task_response_type response_type(Generation kind) {
  switch (kind) {
    case Generation::kChat: return TASK_RESPONSE_TYPE_OAI_CHAT;
    case Generation::kCompletion: return TASK_RESPONSE_TYPE_OAI_CMPL;
    default: return TASK_RESPONSE_TYPE_NONE;
  }
}

/// The prompt of a fill-in-the-middle request, in the model's own FIM tokens.
void set_infill_prompt(const PrepareContext& context, json& data) {
  for (const llama_token token : {llama_vocab_fim_pre(context.vocab), llama_vocab_fim_suf(context.vocab),
                                  llama_vocab_fim_mid(context.vocab)}) {
    if (token == LLAMA_TOKEN_NULL) {
      throw std::invalid_argument("This model has no fill-in-the-middle tokens.");
    }
  }
  if (!data.contains("input_extra")) data["input_extra"] = json::array();
  const llama_tokens middle =
      tokenize_mixed(context.vocab, json(json_value(data, "prompt", std::string())), false, true);
  data["prompt"] = format_prompt_infill(context.vocab, data.at("input_prefix"), data.at("input_suffix"),
                                        data.at("input_extra"), context.params.n_batch,
                                        context.params.n_predict, context.meta.slot_n_ctx,
                                        context.params.spm_infill, middle);
}

void collect(const server_task& task, PreparedTasks& prepared) {
  prepared.ids.push_back(task.id);
  prepared.states.push_back(task.create_state());
}

}  // namespace

PreparedTasks prepare_generation(const PrepareContext& context, server_queue& queue, Generation kind,
                                 const std::string& body) {
  json data = json::parse(body);
  if (kind == Generation::kChat) {
    std::vector<raw_buffer> files;
    data = oaicompat_chat_params_parse(data, context.meta.chat_params, files);
  } else if (kind == Generation::kInfill) {
    set_infill_prompt(context, data);
  }

  std::vector<server_tokens> prompts = tokenize_input_prompts(
      context.vocab, nullptr, data.at("prompt"), true, true, mtmd_helper_init_opt_default());
  auto delimiters = common_chat_msg_delimiters_parse(json_value(data, "message_delimiters", json::array()));
  delimiters.tokenize(context.vocab);

  PreparedTasks prepared;
  prepared.stream = json_value(data, "stream", false);
  prepared.response = response_type(kind);
  const std::string completion_id = gen_chatcmplid();
  for (server_tokens& prompt : prompts) {
    server_task task(kind == Generation::kInfill ? SERVER_TASK_TYPE_INFILL : SERVER_TASK_TYPE_COMPLETION);
    task.id = queue.get_new_id();
    task.index = prepared.states.size();
    task.tokens = std::move(prompt);
    task.params = server_schema::eval_llama_cmpl_schema(context.vocab, context.params,
                                                        context.meta.logit_bias_eog, data);
    task.params.message_spans = task.tokens.find_message_spans(delimiters);
    task.params.res_type = prepared.response;
    task.params.oaicompat_cmpl_id = completion_id;
    task.params.oaicompat_model = context.meta.model_name;
    task.id_slot = json_value(data, "id_slot", -1);
    collect(task, prepared);
    for (int i = 1; i < task.params.n_cmpl; ++i) {
      task.add_child(task.id, queue.get_new_id());
      task.child_tasks.back().index = prepared.states.size();
      collect(task.child_tasks.back(), prepared);
    }
    prepared.tasks.push_back(std::move(task));
  }
  if (prepared.tasks.empty()) throw std::invalid_argument("The prompt is empty.");
  return prepared;
}

PreparedTasks prepare_metrics(server_queue& queue) {
  PreparedTasks prepared;
  server_task task(SERVER_TASK_TYPE_METRICS);
  task.id = queue.get_new_id();
  collect(task, prepared);
  prepared.tasks.push_back(std::move(task));
  return prepared;
}

}  // namespace tapline
