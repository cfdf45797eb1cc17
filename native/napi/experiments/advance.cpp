#include "experiment/advance.h"

#include "napi/edit_args.h"
#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

/// Points by their names; where none are named, the block output.
std::vector<Point> point_list(const Napi::Value& value) {
  std::vector<Point> points;
  for (const std::string& name : string_list(value, "points")) {
    const auto found = std::find(kPointNames.begin(), kPointNames.end(), name);
    if (found == kPointNames.end()) wrong_type("points", "a list of names that are known");
    points.push_back(static_cast<Point>(found - kPointNames.begin()));
  }
  if (absent(value)) points.push_back(Point::kBlockOut);
  return points;
}

AdvanceRequest read_request(const Napi::Object& options) {
  AdvanceRequest request;
  request.tokens = token_list(options.Get("tokens"));
  request.layers = int_list_field(options, "layers");
  request.points = point_list(options.Get("points"));
  request.all_rows = bool_field(options, "allRows", true);
  request.keep_states = bool_field(options, "keepStates", true);
  request.lens_top = int_field(options, "lensTopK", 0);
  request.lens_target = int_field(options, "lensTarget", -1);
  request.lens_answer = bool_field(options, "lensAnswer", false);
  object_field(options, "measure", [&](const Napi::Object& measure) {
    request.measure.layers = int_list_field(measure, "layers");
    request.measure.lens_from = static_cast<uint32_t>(int_field(measure, "lensFrom", 0));
    request.measure.lens_top = int_field(measure, "lensTopK", 0);
  });
  request.next_top = int_field(options, "nextTopK", 0);
  request.keep_logits = bool_field(options, "logits", false);
  request.scored = token_list(options.Get("scored"));
  request.early_exit = bool_field(options, "earlyExit", false);
  request.edits = edit_plan(options.Get("edits"));
  object_field(options, "attention", [&](const Napi::Object& attention) {
    request.attention.layers = int_list_field(attention, "layers");
    request.attention.heads = int_list_field(attention, "heads");
    request.attention.prove = bool_field(attention, "prove", false);
  });
  request.routing = int_list_field(options, "routing");
  return request;
}

Napi::Object layer_to_js(Napi::Env env, LayerStates& layer) {
  Napi::Object out = object_of(env, "layer", layer.layer, "point", name_of(layer.point), "rows", layer.rows,
                               "width", layer.width, "norms", to_js(env, layer.norms));
  if (!layer.states.empty()) out.Set("states", hand_over(env, std::move(layer.states)));
  if (layer.lens.k > 0) out.Set("lens", top_to_js(env, layer.lens));
  return out;
}

Napi::Object attention_to_js(Napi::Env env, LayerAttention& layer) {
  return object_of(env, "layer", layer.layer, "heads", to_js(env, layer.heads), "weights",
                   hand_over(env, std::move(layer.weights)), "apart", layer.apart);
}

Napi::Object routing_to_js(Napi::Env env, LayerRouting& layer) {
  return object_of(env, "layer", layer.layer, "experts", layer.experts, "used", layer.used, "chosen",
                   to_js(env, layer.chosen), "weights", to_js(env, layer.weights));
}

Napi::Value write_result(Napi::Env env, AdvanceResult& found) {
  const auto list = [&](auto& layers, const auto& write) {
    return array_of(env, layers.size(), [&](size_t i) { return write(env, layers[i]); });
  };
  Napi::Object out = object_of(env, "layers", list(found.layers, layer_to_js));
  if (!found.measured.empty()) out.Set("measured", list(found.measured, layer_to_js));
  if (!found.attention.empty()) out.Set("attention", list(found.attention, attention_to_js));
  if (!found.routing.empty()) out.Set("routing", list(found.routing, routing_to_js));
  if (found.next.k > 0) out.Set("next", top_to_js(env, found.next));
  if (!found.logits.empty()) out.Set("logits", to_js(env, found.logits));
  if (!found.effects.empty()) out.Set("effects", effects_to_js(env, found.effects));
  if (!found.log_probabilities.empty()) out.Set("logProbabilities", to_js(env, found.log_probabilities));
  return out;
}

}  // namespace

Napi::Value experiments::advance(const ContextCall& call) {
  auto compute = [request = read_request(call.options)](Passes& passes, const CancelToken& cancel,
                                                        Progress&) {
    return tapline::advance(passes, request, cancel);
  };
  return start(call, std::move(compute), write_result);
}

}  // namespace tapline
