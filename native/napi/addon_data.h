#pragma once

#include <set>

#include "napi/setup.h"
#include "napi/task_threads.h"

namespace tapline {

class EngineHandle;

/// What one JavaScript environment (main thread or worker thread) owns. No globals: several worker threads
/// may load the addon at once.
class AddonData {
 public:
  /// Creates the data of `env`, whose operations end before the environment does.
  static void attach(Napi::Env env);
  static AddonData& of(Napi::Env env) { return *env.GetInstanceData<AddonData>(); }

  TaskThreads operations;
  std::set<EngineHandle*> engines;  // those that have not been closed
  Napi::FunctionReference cancel_token_class;
  Napi::FunctionReference model_class;
  Napi::FunctionReference context_class;
  Napi::FunctionReference engine_class;
  Napi::FunctionReference dictionary_trainer_class;
};

}  // namespace tapline
