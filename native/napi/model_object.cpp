#include "napi/model_object.h"

#include <utility>
#include <vector>

#include "napi/addon_data.h"
#include "napi/args.h"
#include "napi/cancel_object.h"
#include "napi/context_object.h"
#include "napi/worker.h"

namespace tapline {

namespace {

constexpr napi_type_tag kModelTag = {0x7461706c696e6501, 0x6d6f64656c000001};

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

void check_token_ids(const Model& model, const std::vector<llama_token>& tokens) {
  for (const llama_token token : tokens) {
    if (token < 0 || token >= model.info().n_vocab) {
      throw Error(ErrorCode::kInvalidArgument, "Token id " + std::to_string(token) +
                                                   " is outside the vocabulary of " +
                                                   std::to_string(model.info().n_vocab) + " tokens.");
    }
  }
}

struct Pieces {
  std::shared_ptr<Model> model;
  std::vector<llama_token> tokens;
  std::vector<std::string> texts;

  void execute(const CancelToken&) {
    check_token_ids(*model, tokens);
    texts.reserve(tokens.size());
    for (const llama_token token : tokens) texts.push_back(model->piece(token));
  }
  Napi::Value result(Napi::Env env) {
    Napi::Array array = Napi::Array::New(env, texts.size());
    for (uint32_t i = 0; i < texts.size(); ++i) array.Set(i, Napi::String::New(env, texts[i]));
    return array;
  }
};

struct Detokenize {
  std::shared_ptr<Model> model;
  std::vector<llama_token> tokens;
  std::string text;

  void execute(const CancelToken&) {
    check_token_ids(*model, tokens);
    text = model->detokenize(tokens);
  }
  Napi::Value result(Napi::Env env) { return Napi::String::New(env, text); }
};

/// Freeing a large model takes a while: not on the JavaScript thread.
struct Release {
  std::shared_ptr<Model> model;

  void execute(const CancelToken&) { model.reset(); }
  Napi::Value result(Napi::Env env) { return env.Undefined(); }
};

Napi::Value open_model(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object options = info[0].IsObject() ? info[0].As<Napi::Object>() : Napi::Object::New(env);
  OpenModel operation;
  operation.options.path = string_field(options, "path");
  operation.options.gpu_layers = int_field(options, "gpuLayers", -1);
  operation.options.devices = string_list(options.Get("devices"));
  operation.options.fit_tokens = static_cast<uint32_t>(int_field(options, "fitTokens", 4096));
  operation.options.mmap = bool_field(options, "mmap", true);
  operation.progress = Progress(env, options.Get("onProgress"));
  return run_async(env, std::move(operation), CancelObject::from(options.Get("cancel")));
}

Napi::Value reject_closed(Napi::Env env) {
  auto deferred = Napi::Promise::Deferred::New(env);
  deferred.Reject(to_js_error(env, ErrorCode::kClosed, "The model is closed.").Value());
  return deferred.Promise();
}

}  // namespace

void ModelObject::define(Napi::Env env, Napi::Object exports) {
  const Napi::Function constructor =
      DefineClass(env, "Model",
                  {
                      method_named<&ModelObject::tokenize>("tokenize"),
                      method_named<&ModelObject::pieces>("pieces"),
                      method_named<&ModelObject::detokenize>("detokenize"),
                      method_named<&ModelObject::create_context>("createContext"),
                      method_named<&ModelObject::close>("close"),
                  });
  AddonData::of(env).model_class = Napi::Persistent(constructor);
  exports.Set("openModel", Napi::Function::New<guarded_function<open_model>>(env, "openModel"));
}

ModelObject::ModelObject(const Napi::CallbackInfo& info) : GuardedObject<ModelObject>(info) {
  // Only wrap() may construct: it passes the model through a tagged external.
  if (info.Length() != 1 || !info[0].IsExternal() ||
      !info[0].As<Napi::External<std::shared_ptr<Model>>>().CheckTypeTag(&kModelTag)) {
    Napi::TypeError::New(info.Env(), "A Model comes from openModel().").ThrowAsJavaScriptException();
    return;
  }
  model_ = std::move(*info[0].As<Napi::External<std::shared_ptr<Model>>>().Data());
  const ModelInfo& data = model_->info();
  const Napi::Env env = info.Env();
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
  Napi::Array devices = Napi::Array::New(env, data.devices.size());
  for (uint32_t i = 0; i < data.devices.size(); ++i) {
    const DeviceBlocks& device = data.devices[i];
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("name", device.name);
    entry.Set("description", device.description);
    entry.Set("host", device.host);
    entry.Set("blocks", device.blocks);
    devices.Set(i, entry);
  }
  out.Set("devices", devices);
  info.This().As<Napi::Object>().Set("info", out);
}

Napi::Object ModelObject::wrap(Napi::Env env, std::shared_ptr<Model> model) {
  auto external = Napi::External<std::shared_ptr<Model>>::New(env, &model);
  external.TypeTag(&kModelTag);
  return AddonData::of(env).model_class.Value().New({external});
}

Napi::Value ModelObject::tokenize(const Napi::CallbackInfo& info) {
  if (!model_) return reject_closed(info.Env());
  const std::string text = info[0].IsString() ? info[0].As<Napi::String>().Utf8Value() : std::string();
  return run_async(info.Env(),
                   Tokenize{model_, text, info[1].ToBoolean().Value(), info[2].ToBoolean().Value(), {}});
}

Napi::Value ModelObject::pieces(const Napi::CallbackInfo& info) {
  if (!model_) return reject_closed(info.Env());
  return run_async(info.Env(), Pieces{model_, token_list(info[0]), {}});
}

Napi::Value ModelObject::detokenize(const Napi::CallbackInfo& info) {
  if (!model_) return reject_closed(info.Env());
  return run_async(info.Env(), Detokenize{model_, token_list(info[0]), {}});
}

Napi::Value ModelObject::create_context(const Napi::CallbackInfo& info) {
  if (!model_) return reject_closed(info.Env());
  return ContextObject::create(info.Env(), model_, info[0]);
}

Napi::Value ModelObject::close(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), Release{std::move(model_)});
}

}  // namespace tapline
