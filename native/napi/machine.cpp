#include "napi/machine.h"

#include <string>
#include <vector>

#include "model/remote.h"
#include "napi/args.h"
#include "napi/worker.h"

namespace tapline {

namespace {

struct ConnectRemotes {
  std::vector<std::string> endpoints;

  void execute(const CancelToken&) { connect_remotes(endpoints); }
  Napi::Value result(Napi::Env env) { return env.Undefined(); }
};

Napi::Value connect(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), ConnectRemotes{string_list(info[0], "endpoints")});
}

}  // namespace

void define_machine(Napi::Env env, Napi::Object exports) {
  exports.Set("connectRemotes", Napi::Function::New<guarded_function<connect>>(env, "connectRemotes"));
}

}  // namespace tapline
