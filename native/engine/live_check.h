#pragma once

#include <cstddef>

#include "engine/live_request.h"

namespace tapline {

/// Throws kInvalidArgument or kLayerOutOfRange where a plan does not fit a model: an edit at another point
/// than a block's output, a layer that does not exist, a vector of another width, an index into nothing.
/// Decoding relies on it.
void check_live_plan(const LivePlan& plan, int n_layer, size_t n_embd);

}  // namespace tapline
