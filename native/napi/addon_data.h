#pragma once

#include <list>
#include <mutex>

#include "base/cancel.h"
#include "napi/setup.h"

namespace tapline {

/// What one JavaScript environment (main thread or worker thread) owns. No globals: several worker threads
/// may load the addon at once.
class AddonData {
 public:
  /// Creates the data of `env`, and cancels whatever still runs when the environment goes away: teardown
  /// waits for running operations, so they have to end soon.
  static void attach(Napi::Env env);
  static AddonData& of(Napi::Env env) { return *env.GetInstanceData<AddonData>(); }

  using Running = std::list<CancelToken>::iterator;
  Running started(const CancelToken& token) { return running_.insert(running_.end(), token); }
  void finished(Running entry) { running_.erase(entry); }

  Napi::FunctionReference cancel_token_class;
  Napi::FunctionReference model_class;
  Napi::FunctionReference context_class;
  Napi::FunctionReference engine_class;

 private:
  std::list<CancelToken> running_;  // touched on the JavaScript thread only
};

}  // namespace tapline
