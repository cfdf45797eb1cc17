#include "experiment/logit_direction.h"

#include "napi/experiments/experiment.h"

namespace tapline {

Napi::Value experiments::logit_direction(const ContextCall& call) {
  auto compute = [state = float_list(call.options.Get("state")),
                  token = int_field(call.options, "token", -1)](Passes& passes, const CancelToken&,
                                                                Progress&) {
    return tapline::logit_direction(passes, state, token);
  };
  return start(call, std::move(compute), [](Napi::Env env, const LogitDirection& found) {
    return object_of(env, "direction", to_js(env, found.direction), "constant", found.constant);
  });
}

}  // namespace tapline
