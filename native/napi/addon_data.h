#pragma once

#include <set>

#include "napi/setup.h"
#include "napi/task_threads.h"

namespace tapline {

class EngineHandle;

/// The data of one JavaScript environment (main thread or worker thread). There are no globals: several
/// worker threads may load the addon at the same time.
class AddonData {
 public:
  /// Creates the data of `env`, whose operations end before the environment does.
  static void attach(Napi::Env env) {
    auto* data = new AddonData();
    env.SetInstanceData<AddonData>(data);  // Node-API deletes it after the cleanup hooks have run
    env.AddCleanupHook([](AddonData* self) { self->operations.close(); }, data);
  }
  static AddonData& of(Napi::Env env) { return *env.GetInstanceData<AddonData>(); }

  TaskThreads operations;
  std::set<EngineHandle*> engines;  // not closed yet
  Napi::FunctionReference cancel_token_class;
  Napi::FunctionReference model_class;
  Napi::FunctionReference context_class;
  Napi::FunctionReference engine_class;
  Napi::FunctionReference dictionary_trainer_class;
};

}  // namespace tapline
