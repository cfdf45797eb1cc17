#pragma once

#include <cstddef>

#include "engine/live_request.h"

namespace tapline {

/// Throws kInvalidArgument or kLayerOutOfRange if a plan does not fit a model: an edit that is not at a block
/// output, an unknown layer, a vector of the wrong width, an index out of range. Decoding relies on it.
void check_live_plan(const LivePlan& plan, int n_layer, size_t n_embd);

}  // namespace tapline
