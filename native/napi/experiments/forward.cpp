#include "experiment/forward.h"

#include "napi/experiments/experiment.h"
#include "napi/experiments/forward.h"
#include "napi/plan_args.h"

namespace tapline {

namespace {

Napi::Value numbers(Napi::Env env, std::vector<float>& values, std::vector<uint16_t>& halves) {
  return halves.empty() ? hand_over(env, std::move(values)) : hand_over(env, std::move(halves));
}

}  // namespace

ForwardRequest forward_request(const Napi::Object& options) {
  ForwardRequest request;
  each_object(options.Get("sequences"), "sequences", [&](const Napi::Object& given) {
    ForwardSequence sequence;
    if (!absent(given.Get("tokens"))) read_fields(given, "tokens", sequence.tokens);
    sequence.edits = edit_plan(given.Get("edits"));
    request.sequences.push_back(std::move(sequence));
  });
  each_object(options.Get("captures"), "captures", [&](const Napi::Object& given) {
    Place place;
    read_fields(given, "layer", place.layer);
    place.point = point_field(given);
    request.captures.push_back(place);
  });
  read_fields(options, "positions", request.positions, "logitPositions", request.logit_positions, "half",
              request.half, "maxBytes", request.max_bytes);
  request.logits = name_field(options, "logits", std::array{"none", "last", "all", "positions"},
                              std::optional(request.logits));
  return request;
}

Napi::Object to_js(Napi::Env env, ForwardResult& found) {
  const auto capture_to_js = [&](ForwardCapture& capture) {
    return object_of(env, "width", capture.width, "heads", capture.heads, "values",
                     numbers(env, capture.values, capture.halves));
  };
  const auto effects_to_js = [&](const std::vector<EditEffect>& effects) { return to_js(env, effects); };
  Napi::Object out = object_of(env, "captures", array_of(env, found.captures, capture_to_js), "effects",
                               array_of(env, found.effects, effects_to_js));
  if (!found.logits.empty() || !found.half_logits.empty())
    out.Set("logits", numbers(env, found.logits, found.half_logits));
  return out;
}

Napi::Value experiments::forward(const std::shared_ptr<Passes>& passes, const Call& call) {
  return start(passes, call, forward_request(call.options), tapline::forward,
               [](Napi::Env env, ForwardResult& found) -> Napi::Value { return to_js(env, found); });
}

}  // namespace tapline
