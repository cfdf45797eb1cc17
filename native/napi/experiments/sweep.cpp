#include "experiment/sweep.h"

#include "napi/edit_args.h"
#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

SweepRequest read_request(const Napi::Object& options) {
  SweepRequest request;
  request.prompts = token_lists(options.Get("prompts"));
  request.max_tokens = int_field(options, "maxTokens", 32);
  request.targets = token_list(options.Get("targets"));
  request.plans = edit_plans(options.Get("plans"));
  return request;
}

Napi::Object row_to_js(Napi::Env env, const SweepRow& row) {
  return object_of(env, "probability", row.target_probability, "continuation", to_js(env, row.continuation),
                   "finite", row.finite, "effects", effects_to_js(env, row.effects));
}

Napi::Value write_result(Napi::Env env, const std::vector<SweepTrial>& trials) {
  return array_of(env, trials.size(), [&](size_t i) {
    const std::vector<SweepRow>& rows = trials[i].rows;
    return object_of(env, "target", trials[i].target, "baseline", row_to_js(env, trials[i].baseline), "rows",
                     array_of(env, rows.size(), [&](size_t row) { return row_to_js(env, rows[row]); }));
  });
}

}  // namespace

Napi::Value experiments::sweep(const ContextCall& call) {
  return start(call, read_request(call.options), tapline::sweep, write_result);
}

}  // namespace tapline
