#include "napi/edit_args.h"

#include <memory>
#include <string>
#include <utility>

#include "napi/args.h"

namespace tapline {

namespace {

EditKind kind_of(const std::string& name) {
  if (name == "project_out") return EditKind::kProjectOut;
  return name == "clamp" ? EditKind::kClamp : EditKind::kAffine;
}

StrengthUnit unit_of(const std::string& name) {
  if (name == "unit") return StrengthUnit::kUnit;
  return name == "row_norm" ? StrengthUnit::kRowNorm : StrengthUnit::kVector;
}

}  // namespace

Positions positions_of(const Napi::Value& value) {
  Positions positions;
  if (!value.IsObject()) return positions;
  const auto object = value.As<Napi::Object>();
  positions.prompt = bool_field(object, "prompt", true);
  positions.generated = bool_field(object, "generated", true);
  const std::string part = string_field(object, "part");
  if (part == "thinking") positions.part = Positions::Part::kThinking;
  if (part == "answer") positions.part = Positions::Part::kAnswer;
  const std::vector<int32_t> ends = token_list(object.Get("ranges"));
  for (size_t i = 0; i + 1 < ends.size(); i += 2) positions.ranges.push_back({ends[i], ends[i + 1]});
  return positions;
}

EditPlan edit_plan(const Napi::Value& value) {
  EditPlan plan;
  if (!value.IsArray()) return plan;
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value item = array.Get(i);
    if (!item.IsObject()) continue;
    const auto object = item.As<Napi::Object>();
    Edit edit;
    edit.layer = int_field(object, "layer", -1);
    edit.positions = positions_of(object.Get("positions"));
    edit.kind = kind_of(string_field(object, "kind"));
    edit.scale = static_cast<float>(number_field(object, "scale", 1));
    edit.strength = static_cast<float>(number_field(object, "strength", 1));
    edit.unit = unit_of(string_field(object, "unit"));
    std::vector<float> vector = float_list(object.Get("vector"));
    if (!vector.empty()) edit.direction = std::make_shared<const Direction>(std::move(vector));
    edit.least = number_field(object, "min", 0);
    edit.most = number_field(object, "max", 0);
    plan.push_back(std::move(edit));
  }
  return plan;
}

std::vector<EditPlan> edit_plans(const Napi::Value& value) {
  std::vector<EditPlan> plans;
  if (!value.IsArray()) return plans;
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) plans.push_back(edit_plan(array.Get(i)));
  return plans;
}

Napi::Array effects_to_js(Napi::Env env, const std::vector<EditEffect>& effects) {
  Napi::Array out = Napi::Array::New(env, effects.size());
  for (uint32_t i = 0; i < effects.size(); ++i) {
    const double rows = effects[i].rows > 0 ? static_cast<double>(effects[i].rows) : 1;
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("rows", static_cast<double>(effects[i].rows));
    entry.Set("rowLength", effects[i].row_length / rows);
    entry.Set("changeLength", effects[i].change_length / rows);
    out.Set(i, entry);
  }
  return out;
}

}  // namespace tapline
