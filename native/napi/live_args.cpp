#include "napi/live_args.h"

#include <utility>

#include "napi/args.h"
#include "napi/edit_args.h"
#include "napi/results.h"

namespace tapline {

namespace {

LiveWatch watch_of(const Napi::Object& object) {
  LiveWatch watch;
  watch.layers = int_list_field(object, "layers");
  object_field(object, "positions",
               [&](const Napi::Object& positions) { watch.positions = positions_of(positions); });
  watch.norms = bool_field(object, "norms", false);
  watch.lens_top = int_field(object, "lensTop", 0);
  watch.probes = bool_field(object, "probes", false);
  object_field(object, "states", [&](const Napi::Object& states) {
    watch.states = string_field(states, "id");
    watch.states_bytes = static_cast<size_t>(number_field(states, "bytes", 0));
  });
  each_object(object.Get("projections"), "projections", [&](const Napi::Object& entry) {
    watch.projections.push_back({string_field(entry, "name"), int_field(entry, "layer", 0),
                                 std::make_shared<const Direction>(float_list(entry.Get("vector")))});
  });
  return watch;
}

}  // namespace

std::shared_ptr<LivePlan> live_plan(const Napi::Value& value) {
  if (!value.IsObject()) return nullptr;
  const auto object = value.As<Napi::Object>();
  auto plan = std::make_shared<LivePlan>();
  plan->pair = bool_field(object, "pair", false);
  plan->edits = edit_plan(object.Get("edits"));
  plan->gates = int_list_field(object, "gates");
  plan->stop = int_field(object, "stop", -1);
  each_object(object.Get("probes"), "probes", [&](const Napi::Object& entry) {
    plan->probes.push_back({string_field(entry, "name"), int_field(entry, "layer", 0),
                            double_list(entry.Get("weight")), number_field(entry, "bias", 0)});
  });
  each_object(object.Get("conditions"), "conditions", [&](const Napi::Object& entry) {
    plan->conditions.push_back({static_cast<size_t>(int_field(entry, "probe", 0)),
                                number_field(entry, "bound", 0), bool_field(entry, "above", true),
                                int_field(entry, "tokens", 1)});
  });
  plan->labels = string_list(object.Get("labels"), "labels");
  plan->gates.resize(plan->edits.size(), -1);
  plan->labels.resize(plan->edits.size(), "{}");
  object_field(object, "watch", [&](const Napi::Object& watch) { plan->watch = watch_of(watch); });
  return plan;
}

Napi::Array states_to_js(Napi::Env env, const std::vector<LiveStates>& states) {
  return array_of(env, states.size(), [&](size_t i) {
    const LiveStates& capture = states[i];
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("id", capture.id);
    entry.Set("promptTokens", capture.n_prompt);
    entry.Set("rows", to_js(env, capture.rows));
    entry.Set("tokens", to_js(env, capture.tokens));
    entry.Set("layers", array_of(env, capture.layers.size(), [&](size_t layer) {
                Napi::Object one = Napi::Object::New(env);
                one.Set("layer", capture.layers[layer]);
                one.Set("values", to_js(env, capture.values[layer]));
                return one;
              }));
    return entry;
  });
}

}  // namespace tapline
