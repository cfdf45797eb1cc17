#pragma once

#include <memory>

#include "engine/live_request.h"
#include "napi/setup.h"

namespace tapline {

/// A copy of a live request's plan, as src/native/live.ts makes it; null for anything but an object.
/// TypeScript has validated it.
std::unique_ptr<LivePlan> live_plan(const Napi::Value& value);

}  // namespace tapline
