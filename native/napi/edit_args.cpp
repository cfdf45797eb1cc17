#include "napi/edit_args.h"

#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "dictionaries/dictionary.h"
#include "napi/args.h"
#include "napi/dictionaries.h"
#include "napi/results.h"

namespace tapline {

Positions positions_of(const Napi::Object& object) {
  Positions positions;
  positions.prompt = bool_field(object, "prompt", true);
  positions.generated = bool_field(object, "generated", true);
  positions.part = name_field<Positions::Part>(object, "part", std::array{"any", "thinking", "answer"},
                                               Positions::Part::kAny);
  const std::vector<int32_t> ends = token_list(object.Get("ranges"));
  for (size_t i = 0; i + 1 < ends.size(); i += 2) positions.ranges.push_back({ends[i], ends[i + 1]});
  return positions;
}

namespace {

/// The activation of a dictionary's feature. The file stays mapped as long as somebody may read it.
std::shared_ptr<const Gauge> gauge_of(const Napi::Object& feature, size_t width) {
  const auto dictionary =
      std::make_shared<const dictionaries::Dictionary>(dictionary_layout(feature.Get("dictionary")));
  if (static_cast<size_t>(dictionary->hidden()) != width)
    wrong_type("a feature", "one of the vector's width");
  const int index = dictionary->checked_feature(int_field(feature, "index", -1));
  return std::make_shared<const Gauge>(
      [dictionary, index](const float* row, const std::function<double(double)>& change) {
        const dictionaries::FeatureOfRow read = dictionary->feature(row, index, change);
        return Reading{read.activation, read.unit};
      });
}

}  // namespace

EditPlan edit_plan(const Napi::Value& value) {
  EditPlan plan;
  each_object(value, "edits", [&](const Napi::Object& object) {
    Edit edit;
    edit.layer = int_field(object, "layer", -1);
    edit.heads = int_list_field(object, "heads");
    edit.point = name_field<Point>(object, "point", kPointNames, Point::kBlockOut);
    object_field(object, "positions",
                 [&](const Napi::Object& positions) { edit.positions = positions_of(positions); });
    edit.kind = name_field<EditKind>(object, "kind", std::array{"affine", "project_out", "clamp", "hold"});
    edit.scale = static_cast<float>(number_field(object, "scale", 1));
    edit.strength = static_cast<float>(number_field(object, "strength", 1));
    edit.unit = name_field<StrengthUnit>(object, "unit", std::array{"unit", "vector", "row_norm"});
    std::vector<float> vector = float_list(object.Get("vector"));
    object_field(object, "feature",
                 [&](const Napi::Object& feature) { edit.gauge = gauge_of(feature, vector.size()); });
    if (!vector.empty()) edit.direction = std::make_shared<const Direction>(std::move(vector));
    edit.least = number_field(object, "min", 0);
    edit.most = number_field(object, "max", 0);
    if ((edit.kind == EditKind::kHold) != (edit.gauge != nullptr))
      wrong_type("an edit", "a hold of a feature");
    plan.push_back(std::move(edit));
  });
  return plan;
}

std::vector<EditPlan> edit_plans(const Napi::Value& value) {
  std::vector<EditPlan> plans;
  each_element(value, "plans", [&](const Napi::Value& plan) { plans.push_back(edit_plan(plan)); });
  return plans;
}

Napi::Array effects_to_js(Napi::Env env, const std::vector<EditEffect>& effects) {
  return array_of(env, effects.size(), [&](size_t i) {
    const double rows = effects[i].rows > 0 ? static_cast<double>(effects[i].rows) : 1;
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("rows", static_cast<double>(effects[i].rows));
    entry.Set("rowLength", effects[i].row_length / rows);
    entry.Set("changeLength", effects[i].change_length / rows);
    return entry;
  });
}

}  // namespace tapline
