#pragma once

#include <cstddef>

#include "capture/residual_stream.h"
#include "engine/live_request.h"

namespace tapline {

/// Throws kInvalidArgument, kUnsupportedArchitecture or kLayerOutOfRange if a plan does not fit a model: an
/// unknown layer or point, a vector of the wrong width, an index out of range. Decoding relies on it.
void check_live_plan(const LivePlan& plan, const ResidualStream& stream, int n_layer, size_t n_embd);

/// The numbers of a watched row: of its point, or of its heads. The plan was checked.
size_t watched_width(const LiveWatch& watch, const ResidualStream& stream, int n_embd);

}  // namespace tapline
