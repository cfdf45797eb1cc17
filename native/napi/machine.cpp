#include "napi/machine.h"

#include <array>
#include <string>
#include <vector>

#include "model/quantise.h"
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

struct Quantise {
  std::string from, to;
  Quantisation form;
  int threads;

  void execute(const CancelToken&) { quantise(from, to, form, threads); }
  Napi::Value result(Napi::Env env) { return env.Undefined(); }
};

Napi::Value quantise_model(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  return run_async(info.Env(), Quantise{string_field(options, "from"), string_field(options, "to"),
                                        name_field<Quantisation>(
                                            options, "form", std::array{"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"}),
                                        int_field(options, "threads", 0)});
}

}  // namespace

void define_machine(Napi::Env env, Napi::Object exports) {
  exports.Set("connectRemotes", Napi::Function::New<guarded_function<connect>>(env, "connectRemotes"));
  exports.Set("quantise", Napi::Function::New<guarded_function<quantise_model>>(env, "quantise"));
}

}  // namespace tapline
