#include "engine/served_model.h"

#include "base/error.h"
#include "chat.h"
#include "engine/options.h"

namespace tapline {

void check_slots(const llama_model* model, const std::string& path, int slots) {
  char architecture[32];
  llama_model_meta_val_str(model, "general.architecture", architecture, sizeof(architecture));
  const llama_ftype type = llama_model_ftype(model);
  const bool exact =
      type == LLAMA_FTYPE_ALL_F32 || type == LLAMA_FTYPE_MOSTLY_F16 || type == LLAMA_FTYPE_MOSTLY_BF16;
  if (std::string(architecture) != "minimax-01" || exact || slots == 1) return;
  throw_error(ErrorCode::kModelLoad, "The model '", path, "' is served with ", slots,
              " slots, but llama.cpp v" TAPLINE_LLAMA_CPP_VERSION
              " ends the process when it computes several texts of a quantised minimax-01 at the same time; "
              "serve it with --parallel 1.");
}

namespace {

/// The text that begins thinking in the template; empty if there is none.
std::string thinking_tag(const server_chat_params& chat) {
  common_chat_templates_inputs inputs;
  common_chat_msg question;
  question.role = "user";
  question.content = "?";
  inputs.messages = {question};
  inputs.use_jinja = chat.use_jinja;
  inputs.reasoning_format = chat.reasoning_format;
  inputs.enable_thinking = true;
  try {
    return common_chat_templates_apply(chat.tmpls.get(), inputs).thinking_start_tag;
  } catch (const std::exception&) {
    return {};  // requests will report why the template rejects even this chat
  }
}

}  // namespace

std::string describe_served(const server_context_meta& meta, const llama_model* model,
                            const common_params& params, const Introspection& introspection) {
  char architecture[128] = {0};
  llama_model_meta_val_str(model, "general.architecture", architecture, sizeof architecture);
  const auto& chat = meta.chat_params;
  json caps = json::object();
  for (const auto& [name, supported] : meta.chat_template_caps) caps[name] = supported;
  return safe_json_to_str(json{
      {"id", meta.model_name},
      {"path", meta.model_path},
      {"architecture", std::string(architecture)},
      {"quantization", meta.model_ftype},
      {"nLayer", llama_model_n_layer(model)},
      {"nEmbd", llama_model_n_embd(model)},
      {"nVocab", meta.model_vocab_n_tokens},
      {"nCtxTrain", meta.model_n_ctx_train},
      {"nParams", meta.model_n_params},
      {"bytes", meta.model_size},
      {"slots", params.n_parallel},
      {"slotContext", meta.slot_n_ctx},
      {"batch", params.n_batch},
      {"threads", params.cpuparams.n_threads},
      {"embeddings", params.embedding},
      {"images", meta.has_inp_image},
      {"pooling", pooling_name(meta.pooling_type)},
      {"chatTemplate", params.chat_template != kRawTextTemplate},
      {"templateSupportsThinking", common_chat_templates_support_enable_thinking(chat.tmpls.get())},
      {"thinking", chat.enable_thinking},
      {"thinkingTag", thinking_tag(chat)},
      {"templateCapabilities", caps},
      {"captures", introspection.supported()},
      {"noCaptureReason", introspection.reason()},
      {"points", introspection.points()},
      {"normed", introspection.normed()},
  });
}

}  // namespace tapline
