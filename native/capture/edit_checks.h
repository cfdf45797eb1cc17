#pragma once

#include <vector>

#include "capture/edit.h"
#include "capture/residual_stream.h"

namespace tapline {

// Checks of edits against a model's points, for experiments and for the serving model. Layers exist.

/// Throws if the model has no such point.
void check_point(const ResidualStream& stream, Point point);
/// Throws if the block does not have the point.
const Site& check_place(const ResidualStream& stream, Place place);
/// The same for a place that is edited, for some heads or, if none is given, whole rows.
const Site& check_changeable(const ResidualStream& stream, Place place, const std::vector<int>& heads);
/// Throws if an edit's place, heads or vector do not fit the model.
void check_edit(const ResidualStream& stream, const Edit& edit);

}  // namespace tapline
