#pragma once

#include <memory>

#include "numbers/linear_algebra.h"
#include "probes/newton_problem.h"

namespace tapline::probes {

/// A fit on the weights and the bias themselves. `x` must outlive it.
std::unique_ptr<NewtonProblem> weight_problem(const PanelMatrix<double>& x, double c, ThreadTeam* team);

}  // namespace tapline::probes
