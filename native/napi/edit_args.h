#pragma once

#include <vector>

#include "experiment/passes.h"
#include "napi/setup.h"

namespace tapline {

/// Copies of plans of edits, as src/native/edit.ts makes them. TypeScript has validated them.
EditPlan edit_plan(const Napi::Value& value);
std::vector<EditPlan> edit_plans(const Napi::Value& value);

/// A copy of what src/native/edit.ts makes of positions.
Positions positions_of(const Napi::Object& object);

Napi::Array effects_to_js(Napi::Env env, const std::vector<EditEffect>& effects);

}  // namespace tapline
