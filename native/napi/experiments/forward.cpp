#include "experiment/forward.h"

#include "napi/experiments/experiment.h"
#include "napi/experiments/forward.h"
#include "napi/plan_args.h"

namespace tapline {

ForwardRequest forward_request(const Napi::Object& options) {
  ForwardRequest request;
  each_object(options.Get("sequences"), "sequences", [&](const Napi::Object& given) {
    ForwardSequence sequence;
    read_fields(given, "tokens", sequence.tokens);
    sequence.edits = edit_plan(given.Get("edits"));
    request.sequences.push_back(std::move(sequence));
  });
  each_object(options.Get("captures"), "captures", [&](const Napi::Object& given) {
    Place place;
    read_fields(given, "layer", place.layer);
    place.point = point_field(given);
    request.captures.push_back(place);
  });
  read_fields(options, "positions", request.positions, "logitPositions", request.logit_positions);
  request.logits = name_field(options, "logits", std::array{"none", "last", "all", "positions"},
                              std::optional(request.logits));
  return request;
}

Napi::Value to_js(Napi::Env env, ForwardResult& found) {
  Napi::Object out =
      object_of(env, "captures",
                array_of(env, found.captures,
                         [&](ForwardCapture& capture) {
                           return object_of(env, "width", capture.width, "values",
                                            hand_over(env, std::move(capture.values)));
                         }),
                "effects", array_of(env, found.effects, [&](const std::vector<EditEffect>& effects) {
                  return to_js(env, effects);
                }));
  if (!found.logits.empty()) out.Set("logits", hand_over(env, std::move(found.logits)));
  return out;
}

Napi::Value experiments::forward(const std::shared_ptr<Passes>& passes, const Call& call) {
  return start(passes, call, forward_request(call.options), tapline::forward,
               [](Napi::Env env, ForwardResult& found) { return to_js(env, found); });
}

}  // namespace tapline
