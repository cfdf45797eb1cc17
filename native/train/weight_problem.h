#pragma once

#include <memory>

#include "train/linear_algebra.h"
#include "train/newton_problem.h"

namespace tapline::train {

/// A fit on the weights and the bias themselves. `x` must outlive it.
std::unique_ptr<NewtonProblem> weight_problem(const PanelMatrix<double>& x, double c, ThreadTeam* team);

}  // namespace tapline::train
