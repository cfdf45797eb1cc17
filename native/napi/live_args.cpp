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
  each_object(object.Get("projections"), [&](const Napi::Object& entry) {
    watch.projections.push_back({string_field(entry, "name"), int_field(entry, "layer", 0),
                                 std::make_shared<const Direction>(float_list(entry.Get("vector")))});
  });
  return watch;
}

}  // namespace

std::unique_ptr<LivePlan> live_plan(const Napi::Value& value) {
  if (!value.IsObject()) return nullptr;
  const auto object = value.As<Napi::Object>();
  auto plan = std::make_unique<LivePlan>();
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

}  // namespace tapline
