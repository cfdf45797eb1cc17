#include "model/model.h"

#include <utility>
#include <vector>

#include "napi/handle.h"
#include "napi/objects.h"

namespace tapline {

namespace {

/// JavaScript's handle of a loaded model. close() only drops this handle's share; src/native/model.ts makes
/// it wait for operations.
struct ModelKind : HandleKind {
  using Held = Model;
  static constexpr napi_type_tag kTag = {0x7461706c696e6501, 0x6d6f64656c000001};
  static constexpr const char* kWhat = "model";
  static constexpr const char* kOrigin = "A Model comes from openModel().";
  static constexpr auto kConstructor = &AddonData::model_class;

  static Napi::Value describe(const Model& model, Napi::Env env) {
    const ModelInfo& info = model.info();
    return object_of(
        env, "path", info.path, "architecture", info.architecture, "name", info.name, "quantization",
        info.quantization, "chatTemplate", info.chat_template, "nLayer", info.n_layer, "nEmbd", info.n_embd,
        "nVocab", info.n_vocab, "nCtxTrain", info.n_ctx_train, "nSwa", info.n_swa, "nParams", info.n_params,
        "bytes", info.bytes, "addBos", info.add_bos, "hasEncoder", info.has_encoder, "hasDecoder",
        info.has_decoder, "recurrent", info.recurrent, "hybrid", info.hybrid, "endOfGeneration",
        info.end_of_generation, "devices", array_of(env, info.devices, [&](const DeviceBlocks& device) {
          return object_of(env, "name", device.name, "description", device.description, "host", device.host,
                           "blocks", device.blocks);
        }));
  }
};

using ModelObject = HandleObject<ModelKind>;
using Shared = std::shared_ptr<Model>;

Napi::Value open_model(const Call& call) {
  ModelOptions options;
  read_fields(call.options, "path", options.path, "gpuLayers", options.gpu_layers, "devices", options.devices,
              "fitTokens", options.fit_tokens, "mmap", options.mmap);
  return start(
      call,
      [options](const CancelToken& cancel, Progress& progress) {
        return Model::open(options, cancel, [&](float fraction) { progress.report(fraction, 1.0); });
      },
      ModelObject::wrap);
}

Napi::Value tokenize(const Shared& model, const Call& call) {
  std::string text;
  if (call.info[0].IsString()) read_value(call.info[0], "a text", text);
  return start(call, [model, text, special = call.info[1].ToBoolean().Value(),
                      parse_special = call.info[2].ToBoolean().Value()] {
    return model->tokenize(text, special, parse_special);
  });
}

std::vector<llama_token> tokens_of(const Call& call) {
  std::vector<llama_token> tokens;
  if (!absent(call.info[0])) read_value(call.info[0], "tokens", tokens);
  return tokens;
}

Napi::Value pieces(const Shared& model, const Call& call) {
  return start(call, [model, tokens = tokens_of(call)] {
    model->check_tokens(tokens);
    std::vector<std::string> texts;
    texts.reserve(tokens.size());
    for (const llama_token token : tokens) texts.push_back(model->piece(token));
    return texts;
  });
}

Napi::Value detokenize(const Shared& model, const Call& call) {
  return start(call, [model, tokens = tokens_of(call)] {
    model->check_tokens(tokens);
    return model->detokenize(tokens);
  });
}

}  // namespace

void define_model(Napi::Env env, Napi::Object exports) {
  ModelObject::define_class(env, "Model",
                            {
                                ModelObject::while_open<tokenize>("tokenize"),
                                ModelObject::while_open<pieces>("pieces"),
                                ModelObject::while_open<detokenize>("detokenize"),
                                ModelObject::while_open<create_context>("createContext"),
                            });
  define<open_model>(exports, "openModel");
}

}  // namespace tapline
