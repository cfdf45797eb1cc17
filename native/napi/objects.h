#pragma once

#include <memory>

#include "model/model.h"
#include "napi/worker.h"

namespace tapline {

// What each file of this folder adds to the module.
void define_model(Napi::Env env, Napi::Object exports);
void define_context(Napi::Env env);
void define_engine(Napi::Env env, Napi::Object exports);
void define_trainers(Napi::Object exports);
void define_dictionary_trainer(Napi::Env env, Napi::Object exports);
void define_encoding(Napi::Object exports);

/// Creates a context on a worker thread: a promise of the JavaScript object.
Napi::Value create_context(const std::shared_ptr<Model>& model, const Call& call);

}  // namespace tapline
