#include "napi/model_object.h"

#include <utility>
#include <vector>

#include "napi/args.h"
#include "napi/cancel_object.h"
#include "napi/context_object.h"
#include "napi/results.h"

namespace tapline {

namespace {

struct OpenModel {
  ModelOptions options;
  Progress progress;
  std::shared_ptr<Model> model;

  void execute(const CancelToken& cancel) {
    model = Model::open(options, cancel, [this](float fraction) { progress.report(fraction, 1.0); });
  }
  Napi::Value result(Napi::Env env) { return ModelObject::wrap(env, std::move(model)); }
};

struct Tokenize {
  std::shared_ptr<Model> model;
  std::string text;
  bool special;
  bool parse_special;
  std::vector<llama_token> tokens;

  void execute(const CancelToken&) { tokens = model->tokenize(text, special, parse_special); }
  Napi::Value result(Napi::Env env) { return to_js(env, tokens); }
};

struct Pieces {
  std::shared_ptr<Model> model;
  std::vector<llama_token> tokens;
  std::vector<std::string> texts;

  void execute(const CancelToken&) {
    model->check_tokens(tokens);
    texts.reserve(tokens.size());
    for (const llama_token token : tokens) texts.push_back(model->piece(token));
  }
  Napi::Value result(Napi::Env env) { return to_js(env, texts); }
};

struct Detokenize {
  std::shared_ptr<Model> model;
  std::vector<llama_token> tokens;
  std::string text;

  void execute(const CancelToken&) {
    model->check_tokens(tokens);
    text = model->detokenize(tokens);
  }
  Napi::Value result(Napi::Env env) { return Napi::String::New(env, text); }
};

Napi::Object describe(const Model& model, Napi::Env env) {
  const ModelInfo& data = model.info();
  Napi::Object out = Napi::Object::New(env);
  out.Set("path", data.path);
  out.Set("architecture", data.architecture);
  out.Set("name", data.name);
  out.Set("quantization", data.quantization);
  out.Set("chatTemplate", data.chat_template);
  out.Set("nLayer", data.n_layer);
  out.Set("nEmbd", data.n_embd);
  out.Set("nVocab", data.n_vocab);
  out.Set("nCtxTrain", data.n_ctx_train);
  out.Set("nSwa", data.n_swa);
  out.Set("nParams", static_cast<double>(data.n_params));
  out.Set("bytes", static_cast<double>(data.bytes));
  out.Set("addBos", data.add_bos);
  out.Set("hasEncoder", data.has_encoder);
  out.Set("hasDecoder", data.has_decoder);
  out.Set("recurrent", data.recurrent);
  out.Set("hybrid", data.hybrid);
  out.Set("endOfGeneration", to_js(env, data.end_of_generation));
  out.Set("devices", array_of(env, data.devices.size(), [&](size_t i) {
            const DeviceBlocks& device = data.devices[i];
            Napi::Object entry = Napi::Object::New(env);
            entry.Set("name", device.name);
            entry.Set("description", device.description);
            entry.Set("host", device.host);
            entry.Set("blocks", device.blocks);
            return entry;
          }));
  return out;
}

Napi::Value open_model(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object options = options_of(info);
  OpenModel operation;
  operation.options.path = string_field(options, "path");
  operation.options.gpu_layers = int_field(options, "gpuLayers", -1);
  operation.options.devices = string_list(options.Get("devices"), "devices");
  operation.options.fit_tokens = static_cast<uint32_t>(int_field(options, "fitTokens", 4096));
  operation.options.mmap = bool_field(options, "mmap", true);
  operation.progress = Progress(env, options.Get("onProgress"));
  return run_async(env, std::move(operation), CancelObject::from(options.Get("cancel")));
}

}  // namespace

void ModelObject::define(Napi::Env env, Napi::Object exports) {
  define_class(env, "Model",
               {
                   while_open<&ModelObject::tokenize>("tokenize"),
                   while_open<&ModelObject::pieces>("pieces"),
                   while_open<&ModelObject::detokenize>("detokenize"),
                   while_open<&ModelObject::create_context>("createContext"),
                   closing(),
               });
  exports.Set("openModel", Napi::Function::New<guarded_function<open_model>>(env, "openModel"));
}

ModelObject::ModelObject(const Napi::CallbackInfo& info) : HandleObject(info) {
  set_info(info, describe);
}

Napi::Value ModelObject::tokenize(const Napi::CallbackInfo& info) {
  const std::string text = info[0].IsString() ? info[0].As<Napi::String>().Utf8Value() : std::string();
  return run_async(info.Env(),
                   Tokenize{held_, text, info[1].ToBoolean().Value(), info[2].ToBoolean().Value(), {}});
}

Napi::Value ModelObject::pieces(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), Pieces{held_, token_list(info[0]), {}});
}

Napi::Value ModelObject::detokenize(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), Detokenize{held_, token_list(info[0]), {}});
}

Napi::Value ModelObject::create_context(const Napi::CallbackInfo& info) {
  return ContextObject::create(info.Env(), held_, options_of(info));
}

}  // namespace tapline
