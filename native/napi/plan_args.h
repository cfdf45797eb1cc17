#pragma once

#include <memory>
#include <vector>

#include "dictionaries/dictionary.h"
#include "engine/live_request.h"
#include "napi/setup.h"

namespace tapline {

// Copies of what src/native/edit.ts, live.ts, lens.ts and dictionary.ts make, which have validated it.

EditPlan edit_plan(const Napi::Value& value);

/// Null if there is none.
std::shared_ptr<LivePlan> live_plan(const Napi::Value& value);

Translator lens_translator(const Napi::Object& given);

dictionaries::Layout dictionary_layout(const Napi::Value& given);

/// Mean lengths per row.
Napi::Value to_js(Napi::Env env, const std::vector<EditEffect>& effects);
Napi::Value to_js(Napi::Env env, const std::vector<LiveStates>& states);

}  // namespace tapline
