#pragma once

#include <cstddef>

#include "capture/residual_stream.h"
#include "engine/live_request.h"

namespace tapline {

/// Throws kInvalidArgument, kUnsupportedArchitecture or kLayerOutOfRange if a plan does not fit a model: an
/// unknown layer or point, a vector of the wrong width, an index out of range. Decoding relies on it.
void check_live_plan(const LivePlan& plan, const ResidualStream& stream, int n_layer, size_t n_embd);

}  // namespace tapline
