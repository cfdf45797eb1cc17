#include "experiment/sweep.h"

#include "napi/experiments/experiment.h"
#include "napi/plan_args.h"

namespace tapline {

namespace {

SweepRequest read_request(const Napi::Object& options) {
  SweepRequest request;
  read_fields(options, "prompts", request.prompts, "maxTokens", request.max_tokens, "targets",
              request.targets);
  each_element(options.Get("plans"), "plans",
               [&](const Napi::Value& plan) { request.plans.push_back(edit_plan(plan)); });
  return request;
}

Napi::Value write_result(Napi::Env env, const std::vector<SweepTrial>& trials) {
  const auto write_row = [env](const SweepRow& row) {
    return object_of(env, "probability", row.target_probability, "continuation", row.continuation, "finite",
                     row.finite, "effects", row.effects);
  };
  return array_of(env, trials, [&](const SweepTrial& trial) {
    return object_of(env, "target", trial.target, "baseline", write_row(trial.baseline), "rows",
                     array_of(env, trial.rows, write_row));
  });
}

}  // namespace

Napi::Value experiments::sweep(const std::shared_ptr<Passes>& passes, const Call& call) {
  return start(passes, call, read_request(call.options), tapline::sweep, write_result);
}

}  // namespace tapline
