#pragma once

#include <memory>

#include "probes/gram_factor.h"
#include "probes/newton_problem.h"

namespace tapline::probes {

/// A fit on the Gram matrix K: w = X^T a. With K in single precision, the scores along the way are those of a
/// K that is wrong in the seventh digit; renew() computes them from the examples, and what K gets wrong then
/// is only what moved since.
template <class T>
std::unique_ptr<NewtonProblem> gram_problem(const StandardisedExamples& x, const SharedGram<T>& shared,
                                            double c, ThreadTeam* team);

}  // namespace tapline::probes
