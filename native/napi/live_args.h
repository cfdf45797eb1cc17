#pragma once

#include <memory>
#include <vector>

#include "engine/live_request.h"
#include "napi/setup.h"

namespace tapline {

/// A copy of a live request's plan, as src/native/live.ts makes it; null where there is none.
std::shared_ptr<LivePlan> live_plan(const Napi::Value& value);

/// Kept rows as src/native/live.ts knows them.
Napi::Array states_to_js(Napi::Env env, const std::vector<LiveStates>& states);

}  // namespace tapline
