#include "napi/live_args.h"

#include <utility>

#include "napi/args.h"
#include "napi/edit_args.h"

namespace tapline {

namespace {

/// Calls visit(object) for each object of an array.
template <class Visit>
void each_object(const Napi::Value& value, const Visit& visit) {
  if (!value.IsArray()) return;
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value item = array.Get(i);
    if (item.IsObject()) visit(item.As<Napi::Object>());
  }
}

LiveWatch watch_of(const Napi::Object& object) {
  LiveWatch watch;
  watch.layers = int_list_field(object, "layers");
  watch.positions = positions_of(object.Get("positions"));
  watch.norms = bool_field(object, "norms", false);
  watch.lens_top = int_field(object, "lensTop", 0);
  watch.probes = bool_field(object, "probes", false);
  const Napi::Value states = object.Get("states");
  if (states.IsObject()) {
    watch.states = string_field(states.As<Napi::Object>(), "id");
    watch.states_bytes = static_cast<size_t>(number_field(states.As<Napi::Object>(), "bytes", 0));
  }
  each_object(object.Get("projections"), [&](const Napi::Object& entry) {
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
  each_object(object.Get("probes"), [&](const Napi::Object& entry) {
    plan->probes.push_back({string_field(entry, "name"), int_field(entry, "layer", 0),
                            double_list(entry.Get("weight")), number_field(entry, "bias", 0)});
  });
  each_object(object.Get("conditions"), [&](const Napi::Object& entry) {
    plan->conditions.push_back({static_cast<size_t>(int_field(entry, "probe", 0)),
                                number_field(entry, "bound", 0), bool_field(entry, "above", true),
                                int_field(entry, "tokens", 1)});
  });
  const Napi::Value labels = object.Get("labels");
  if (labels.IsArray()) {
    const auto array = labels.As<Napi::Array>();
    for (uint32_t i = 0; i < array.Length(); ++i)
      plan->labels.push_back(
          array.Get(i).IsString() ? Napi::Value(array.Get(i)).As<Napi::String>().Utf8Value() : "{}");
  }
  plan->gates.resize(plan->edits.size(), -1);
  plan->labels.resize(plan->edits.size(), "{}");
  const Napi::Value watch = object.Get("watch");
  if (watch.IsObject()) plan->watch = watch_of(watch.As<Napi::Object>());
  return plan;
}

Napi::Array states_to_js(Napi::Env env, const std::vector<LiveStates>& states) {
  Napi::Array out = Napi::Array::New(env, states.size());
  for (uint32_t i = 0; i < states.size(); ++i) {
    const LiveStates& kept = states[i];
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("id", kept.id);
    entry.Set("promptTokens", kept.n_prompt);
    entry.Set("rows", to_js(env, kept.rows));
    entry.Set("tokens", to_js(env, kept.tokens));
    Napi::Array layers = Napi::Array::New(env, kept.layers.size());
    for (uint32_t layer = 0; layer < kept.layers.size(); ++layer) {
      Napi::Object one = Napi::Object::New(env);
      one.Set("layer", kept.layers[layer]);
      one.Set("values", to_js(env, kept.values[layer]));
      layers.Set(layer, one);
    }
    entry.Set("layers", layers);
    out.Set(i, entry);
  }
  return out;
}

}  // namespace tapline
