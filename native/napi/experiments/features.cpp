#include "experiment/features.h"

#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

FeatureRequest read_request(const Napi::Object& options) {
  FeatureRequest request;
  read_fields(options, "layers", request.layers, "sequences", request.sequences, "starts", request.starts);
  request.point = point_field(options);
  if (!absent(options.Get("target"))) request.target = point_field(options, "target");
  request.rows = name_field(options, "rows", std::array{"last", "all", "mean"}, std::optional(request.rows));
  return request;
}

Napi::Value write_result(Napi::Env env, FeatureResult& found) {
  const size_t layers = found.layers.size();
  size_t at = 0;
  return array_of(env, found.layers, [&](int layer) {
    const size_t i = at++;
    Napi::Object out = object_of(env, "layer", layer, "states", hand_over(env, std::move(found.states[i])),
                                 "excluded", found.excluded[i]);
    if (found.states.size() > layers) out.Set("target", hand_over(env, std::move(found.states[layers + i])));
    return out;
  });
}

}  // namespace

Napi::Value experiments::features(const std::shared_ptr<Passes>& passes, const Call& call) {
  return start(passes, call, read_request(call.options), tapline::features, write_result);
}

}  // namespace tapline
