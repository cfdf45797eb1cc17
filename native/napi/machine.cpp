#include "napi/machine.h"

#include <string>
#include <vector>

#include "model/remote.h"
#include "napi/worker.h"

namespace tapline {

namespace {

struct ConnectRemotes {
  std::vector<std::string> endpoints;

  void execute(const CancelToken&) { connect_remotes(endpoints); }
  Napi::Value result(Napi::Env env) { return env.Undefined(); }
};

Napi::Value connect(const Napi::CallbackInfo& info) {
  ConnectRemotes operation;
  if (info[0].IsArray()) {
    const auto array = info[0].As<Napi::Array>();
    for (uint32_t i = 0; i < array.Length(); ++i) {
      const Napi::Value item = array.Get(i);
      if (item.IsString()) operation.endpoints.push_back(item.As<Napi::String>().Utf8Value());
    }
  }
  return run_async(info.Env(), std::move(operation));
}

}  // namespace

void define_machine(Napi::Env env, Napi::Object exports) {
  exports.Set("connectRemotes", Napi::Function::New<connect>(env, "connectRemotes"));
}

}  // namespace tapline
