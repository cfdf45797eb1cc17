#include "experiment/advance.h"

#include "napi/experiments/experiment.h"
#include "napi/plan_args.h"

namespace tapline {

namespace {

AdvanceRequest read_request(const Napi::Object& options) {
  AdvanceRequest request;
  read_fields(options, "tokens", request.tokens, "layers", request.layers, "allRows", request.all_rows,
              "keepStates", request.keep_states, "lensTopK", request.lens_top, "lensTarget",
              request.lens_target, "lensAnswer", request.lens_answer, "nextTopK", request.next_top, "logits",
              request.keep_logits, "scored", request.scored, "earlyExit", request.early_exit, "routing",
              request.routing);
  const Napi::Value points = options.Get("points");
  if (!absent(points)) request.points.clear();
  each_element(points, "points", [&](const Napi::Value& point) {
    request.points.push_back(named<Point>(point, "points", kPointNames));
  });
  object_field(options, "lensExtras", [&](const Napi::Object& extras) {
    LensExtras& wanted = request.lens_extras.emplace();
    read_fields(extras, "measures", wanted.measures);
    each_object(extras.Get("translators"), "translators", [&](const Napi::Object& given) {
      wanted.translators[field(given, "layer", -1)] = lens_translator(given);
    });
  });
  object_field(options, "measure", [&](const Napi::Object& measure) {
    MeasureRequest& wanted = request.measure;
    read_fields(measure, "layers", wanted.layers, "lensFrom", wanted.lens_from, "lensTopK", wanted.lens_top);
  });
  request.edits = edit_plan(options.Get("edits"));
  object_field(options, "attention", [&](const Napi::Object& attention) {
    AttentionRequest& wanted = request.attention;
    read_fields(attention, "layers", wanted.layers, "heads", wanted.heads, "prove", wanted.prove);
  });
  return request;
}

Napi::Value write_result(Napi::Env env, AdvanceResult& found) {
  const auto layer_to_js = [&](LayerStates& layer) {
    Napi::Object entry = object_of(env, "layer", layer.layer, "point", name_of(layer.point), "rows",
                                   layer.rows, "width", layer.width, "norms", layer.norms);
    if (!layer.states.empty()) entry.Set("states", hand_over(env, std::move(layer.states)));
    if (layer.lens.top.k > 0) entry.Set("lens", to_js(env, layer.lens));
    if (layer.translated.top.k > 0) entry.Set("translated", to_js(env, layer.translated));
    return entry;
  };
  Napi::Object out = object_of(env, "layers", array_of(env, found.layers, layer_to_js));
  if (!found.measured.empty()) out.Set("measured", array_of(env, found.measured, layer_to_js));
  if (!found.attention.empty()) {
    out.Set("attention", array_of(env, found.attention, [&](LayerAttention& layer) {
              return object_of(env, "layer", layer.layer, "heads", layer.heads, "weights",
                               hand_over(env, std::move(layer.weights)), "apart", layer.apart);
            }));
  }
  if (!found.routing.empty()) {
    out.Set("routing", array_of(env, found.routing, [&](const LayerRouting& layer) {
              return object_of(env, "layer", layer.layer, "experts", layer.experts, "used", layer.used,
                               "chosen", layer.chosen, "weights", layer.weights);
            }));
  }
  if (found.next.k > 0) out.Set("next", to_js(env, found.next));
  set_nonempty(out, "logits", found.logits, "effects", found.effects, "logProbabilities",
               found.log_probabilities);
  return out;
}

}  // namespace

Napi::Value experiments::advance(const std::shared_ptr<Passes>& passes, const Call& call) {
  auto compute = [passes, request = read_request(call.options)](const CancelToken& cancel) {
    return tapline::advance(*passes, request, cancel);
  };
  return start(call, std::move(compute), write_result);
}

}  // namespace tapline
