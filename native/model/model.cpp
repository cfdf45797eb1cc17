#include "model/model.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "model/tensor_map.h"

namespace tapline {

namespace {

std::string metadata(const llama_model* model, const char* key) {
  char buffer[512];
  const int length = llama_model_meta_val_str(model, key, buffer, sizeof(buffer));
  return length < 0 ? std::string() : std::string(buffer);
}

struct LoadState {
  const CancelToken& cancel;
  const Model::LoadProgress& progress;
};

bool on_load_progress(float fraction, void* user_data) {
  const auto* state = static_cast<LoadState*>(user_data);
  if (state->progress) state->progress(fraction);
  return !state->cancel.cancelled();
}

/// Calls write(data, capacity), which returns the length, or the missing capacity as a negative number; then
/// once more. Whether that is enough.
template <class Buffer, class Write>
bool fill(Buffer& buffer, const Write& write) {
  int32_t length = write(buffer.data(), static_cast<int32_t>(buffer.size()));
  if (length < 0) {
    buffer.resize(static_cast<size_t>(-length));
    length = write(buffer.data(), static_cast<int32_t>(buffer.size()));
  }
  buffer.resize(static_cast<size_t>(std::max(0, length)));
  return length >= 0;
}

}  // namespace

void start_backends() {
  static std::once_flag once;
  std::call_once(once, [] {
    install_log_sink();
    llama_backend_init();
  });
}

std::shared_ptr<Model> Model::open(const ModelOptions& options, const CancelToken& cancel,
                                   const LoadProgress& progress) {
  start_backends();
  LoadState state{cancel, progress};
  llama_model_params params = llama_model_default_params();
  Placement placement(options.devices, options.gpu_layers);
  placement.fit(options.path, options.fit_tokens);
  placement.apply(params);
  params.load_mode = options.mmap ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
  params.progress_callback = on_load_progress;
  params.progress_callback_user_data = &state;

  ErrorLogScope log;
  llama_model* handle = llama_model_load_from_file(options.path.c_str(), params);
  if (handle == nullptr) {
    cancel.check();
    const std::string reason = log.first_line();
    throw_error(ErrorCode::kModelLoad, "The model '", options.path, "' could not be loaded",
                reason.empty() ? "." : ": " + reason + ".");
  }
  std::shared_ptr<Model> model(new Model(handle, /*owned=*/true, options.path));
  check_weights(handle, options.path);
  return model;
}

void check_weights(const llama_model* model, const std::string& path) {
  const std::string latent = ".attn_k_b.weight";
  for (const auto& [name, tensor] : llama_internal_get_tensor_map(model)) {
    if (name.size() < latent.size() || name.substr(name.size() - latent.size()) != latent) continue;
    if (tensor->buffer == nullptr || ggml_n_dims(tensor) != 2) continue;
    const std::string type = ggml_backend_buft_name(ggml_backend_buffer_get_type(tensor->buffer));
    if (type.find("REPACK") == std::string::npos) continue;
    throw_error(ErrorCode::kModelLoad, "The model '", path,
                "' cannot be computed: llama.cpp v" TAPLINE_LLAMA_CPP_VERSION " multiplies '", name, "', ",
                ggml_type_name(tensor->type),
                " weights of one attention head, with the wrong rows on this processor; use the F16 file.");
  }
}

std::shared_ptr<Model> Model::borrow(llama_model* handle, const std::string& path) {
  return std::shared_ptr<Model>(new Model(handle, /*owned=*/false, path));
}

Model::Model(llama_model* handle, bool owned, const std::string& path)
    : handle_(handle), owned_(owned), vocab_(llama_model_get_vocab(handle)) {
  info_.path = path;
  info_.architecture = metadata(handle, "general.architecture");
  info_.name = metadata(handle, "general.name");
  info_.quantization = llama_ftype_name(llama_model_ftype(handle));
  if (const char* text = llama_model_chat_template(handle, nullptr)) info_.chat_template = text;
  info_.n_layer = llama_model_n_layer(handle);
  info_.n_embd = llama_model_n_embd(handle);
  info_.n_vocab = llama_vocab_n_tokens(vocab_);
  for (llama_token token = 0; token < info_.n_vocab; ++token) {
    if (llama_vocab_is_eog(vocab_, token)) info_.end_of_generation.push_back(token);
  }
  info_.n_ctx_train = llama_model_n_ctx_train(handle);
  info_.n_swa = llama_model_n_swa(handle);
  info_.n_params = llama_model_n_params(handle);
  info_.bytes = llama_model_size(handle);
  info_.add_bos = llama_vocab_get_add_bos(vocab_);
  if (info_.add_bos) info_.bos = llama_vocab_bos(vocab_);
  info_.has_encoder = llama_model_has_encoder(handle);
  info_.has_decoder = llama_model_has_decoder(handle);
  info_.recurrent = llama_model_is_recurrent(handle);
  info_.hybrid = llama_model_is_hybrid(handle);
  info_.devices = placed_blocks(handle);
}

Model::~Model() {
  if (owned_) llama_model_free(handle_);
}

void Model::check_tokens(const std::vector<llama_token>& tokens) const {
  for (const llama_token token : tokens) {
    if (token >= 0 && token < info_.n_vocab) continue;
    throw_error(ErrorCode::kInvalidArgument, "Token id ", token, " is outside the vocabulary of ",
                info_.n_vocab, " tokens.");
  }
}

void Model::check_layer(int layer) const {
  if (layer >= 0 && layer < info_.n_layer) return;
  throw_error(ErrorCode::kLayerOutOfRange, "Layer ", layer, " does not exist: the model has ", info_.n_layer,
              " layers, 0 to ", info_.n_layer - 1, ".");
}

bool Model::owns(const ggml_tensor* tensor) const {
  const auto& tensors = llama_internal_get_tensor_map(handle_);
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const auto& entry) { return entry.second == tensor; });
}

ggml_tensor* Model::tensor(const std::string& name) const {
  const auto& tensors = llama_internal_get_tensor_map(handle_);
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& entry) { return entry.first == name; });
  return found == tensors.end() ? nullptr : found->second;
}

std::vector<llama_token> Model::tokenize(std::string_view text, bool special, bool parse_special) const {
  std::vector<llama_token> tokens(text.size() + 2);
  const bool complete = fill(tokens, [&](llama_token* to, int32_t room) {
    return llama_tokenize(vocab_, text.data(), static_cast<int32_t>(text.size()), to, room, special,
                          parse_special);
  });
  if (!complete) throw Error(ErrorCode::kInternal, "The text could not be tokenised.");
  return tokens;
}

std::string Model::piece(llama_token token) const {
  std::string text(64, '\0');
  fill(text, [&](char* to, int32_t room) { return llama_token_to_piece(vocab_, token, to, room, 0, true); });
  return text;
}

std::string Model::detokenize(const std::vector<llama_token>& tokens) const {
  std::string text(tokens.size() * 8 + 16, '\0');
  fill(text, [&](char* to, int32_t room) {
    return llama_detokenize(vocab_, tokens.data(), static_cast<int32_t>(tokens.size()), to, room,
                            /*remove_special=*/false, /*unparse_special=*/true);
  });
  return text;
}

}  // namespace tapline
