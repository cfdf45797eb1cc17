#include "experiment/features.h"

#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

FeatureRequest read_request(const Napi::Object& options) {
  FeatureRequest request;
  request.layers = int_list_field(options, "layers");
  request.point = point_field(options);
  request.sequences = token_lists(options.Get("sequences"));
  request.rows =
      name_field<FeatureRows>(options, "rows", std::array{"last", "all", "mean"}, FeatureRows::kLast);
  request.starts = token_list(options.Get("starts"));
  return request;
}

Napi::Value write_result(Napi::Env env, FeatureResult& found) {
  return array_of(env, found.layers.size(), [&](size_t i) {
    return object_of(env, "layer", found.layers[i], "states", hand_over(env, std::move(found.states[i])),
                     "excluded", excluded_to_js(env, found.excluded[i]));
  });
}

}  // namespace

Napi::Value experiments::features(const ContextCall& call) {
  return start(call, read_request(call.options), tapline::features, write_result);
}

}  // namespace tapline
