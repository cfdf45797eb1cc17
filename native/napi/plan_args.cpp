#include "napi/plan_args.h"

#include <functional>
#include <utility>

#include "napi/args.h"
#include "napi/results.h"

namespace tapline {

namespace {

using dictionaries::Dictionary;

void read_positions(const Napi::Object& object, Positions& positions) {
  object_field(object, "positions", [&](const Napi::Object& given) {
    std::vector<int32_t> ends;
    read_fields(given, "prompt", positions.prompt, "generated", positions.generated, "ranges", ends);
    positions.part = name_field<Positions::Part>(given, "part", std::array{"any", "thinking", "answer"},
                                                 Positions::Part::kAny);
    for (size_t i = 0; i + 1 < ends.size(); i += 2) positions.ranges.push_back({ends[i], ends[i + 1]});
  });
}

/// The activation of a dictionary's feature. The file stays mapped while the gauge exists.
std::shared_ptr<const Gauge> gauge_of(const Napi::Object& feature, size_t width) {
  const auto dictionary = std::make_shared<const Dictionary>(dictionary_layout(feature.Get("dictionary")));
  if (static_cast<size_t>(dictionary->hidden()) != width) wrong_type("a feature", "of the vector's width");
  const int index = dictionary->checked_feature(field(feature, "index", -1));
  return std::make_shared<const Gauge>(
      [dictionary, index](const float* row, const std::function<double(double)>& change) {
        const dictionaries::FeatureOfRow read = dictionary->feature(row, index, change);
        return Reading{read.activation, read.unit};
      });
}

Edit read_edit(const Napi::Object& object) {
  Edit edit;
  edit.layer = -1;
  std::vector<float> vector;
  read_fields(object, "layer", edit.layer, "heads", edit.heads, "scale", edit.scale, "strength",
              edit.strength, "vector", vector, "min", edit.least, "max", edit.most);
  read_positions(object, edit.positions);
  edit.point = name_field<Point>(object, "point", kPointNames, Point::kBlockOut);
  edit.kind = name_field<EditKind>(object, "kind", std::array{"affine", "project_out", "clamp", "hold"});
  edit.unit = name_field<StrengthUnit>(object, "unit", std::array{"unit", "vector", "row_norm"});
  object_field(object, "feature",
               [&](const Napi::Object& feature) { edit.gauge = gauge_of(feature, vector.size()); });
  if (!vector.empty()) edit.direction = std::make_shared<const Direction>(std::move(vector));
  if ((edit.kind == EditKind::kHold) != (edit.gauge != nullptr)) wrong_type("a hold", "of a feature");
  return edit;
}

void read_watch(const Napi::Object& object, LiveWatch& watch) {
  read_fields(object, "layers", watch.layers, "norms", watch.norms, "lensTop", watch.lens_top, "probes",
              watch.probes);
  read_positions(object, watch.positions);
  object_field(object, "states", [&](const Napi::Object& states) {
    read_fields(states, "id", watch.states, "bytes", watch.states_bytes);
  });
  each_object(object.Get("projections"), "projections", [&](const Napi::Object& entry) {
    LiveProjection& projection = watch.projections.emplace_back();
    read_fields(entry, "name", projection.name, "layer", projection.layer);
    projection.direction = std::make_shared<const Direction>(field<std::vector<float>>(entry, "vector"));
  });
}

}  // namespace

dictionaries::Layout dictionary_layout(const Napi::Value& given) {
  if (!given.IsObject()) wrong_type("a dictionary", "an object");
  const auto object = given.As<Napi::Object>();
  dictionaries::Layout layout;
  read_fields(object, "path", layout.path, "subtractBias", layout.subtract_bias, "hidden", layout.hidden,
              "features", layout.features, "k", layout.k, "encoder", layout.encoder, "encoderBias",
              layout.encoder_bias, "decoder", layout.decoder, "decoderBias", layout.decoder_bias, "threshold",
              layout.threshold, "gain", layout.gain, "magnitudeBias", layout.magnitude);
  layout.activation = name_field<dictionaries::Activation>(
      object, "activation", std::array{"relu", "jumprelu", "topk", "topk_raw", "gated"});
  layout.scaling = name_field<dictionaries::RowScaling>(object, "rowScaling",
                                                        std::array{"none", "constant_norm", "layer_norm"});
  constexpr std::array types{"f32", "f16", "bf16"};
  layout.encoder_type = name_field(object, "encoderType", types, std::optional(layout.encoder_type));
  layout.decoder_type = name_field(object, "decoderType", types, std::optional(layout.decoder_type));
  return layout;
}

EditPlan edit_plan(const Napi::Value& value) {
  EditPlan plan;
  each_object(value, "edits", [&](const Napi::Object& object) { plan.push_back(read_edit(object)); });
  return plan;
}

std::shared_ptr<LivePlan> live_plan(const Napi::Value& value) {
  if (!value.IsObject()) return nullptr;
  const auto object = value.As<Napi::Object>();
  auto plan = std::make_shared<LivePlan>();
  plan->edits = edit_plan(object.Get("edits"));
  read_fields(object, "pair", plan->pair, "gates", plan->gates, "stop", plan->stop, "labels", plan->labels);
  each_object(object.Get("probes"), "probes", [&](const Napi::Object& entry) {
    LiveProbe& probe = plan->probes.emplace_back();
    read_fields(entry, "name", probe.name, "layer", probe.layer, "weight", probe.weight, "bias", probe.bias);
  });
  each_object(object.Get("conditions"), "conditions", [&](const Napi::Object& entry) {
    LiveCondition& condition = plan->conditions.emplace_back();
    read_fields(entry, "probe", condition.probe, "bound", condition.bound, "above", condition.above, "tokens",
                condition.tokens);
  });
  plan->gates.resize(plan->edits.size(), -1);
  plan->labels.resize(plan->edits.size(), "{}");
  object_field(object, "watch", [&](const Napi::Object& watch) { read_watch(watch, plan->watch); });
  return plan;
}

Napi::Value to_js(Napi::Env env, const std::vector<EditEffect>& effects) {
  return array_of(env, effects, [&](const EditEffect& effect) {
    const double rows = effect.rows > 0 ? static_cast<double>(effect.rows) : 1;
    return object_of(env, "rows", effect.rows, "rowLength", effect.row_length / rows, "changeLength",
                     effect.change_length / rows);
  });
}

Napi::Value to_js(Napi::Env env, const std::vector<LiveStates>& all) {
  return array_of(env, all, [&](const LiveStates& states) {
    size_t at = 0;
    return object_of(env, "id", states.id, "promptTokens", states.n_prompt, "rows", states.rows, "tokens",
                     states.tokens, "layers", array_of(env, states.layers, [&](int layer) {
                       return object_of(env, "layer", layer, "values", states.values[at++]);
                     }));
  });
}

}  // namespace tapline
