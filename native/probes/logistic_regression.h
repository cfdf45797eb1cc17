#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/cancel.h"
#include "numbers/linear_algebra.h"
#include "probes/standardised.h"

namespace tapline::probes {

/// Minimises  sum_i log(1 + exp(-s_i (w . x_i + b))) + |w|^2 / (2 c),  s_i = +1 or -1; b is free. This is
/// scikit-learn's LogisticRegression(penalty="l2", C=c), in double precision and to convergence.
struct LogisticOptions {
  double c = 1.0;
  double tolerance = 1e-8;  ///< on the infinity norm of the gradient
  int max_iterations = 100;
};

struct LogisticFit {
  std::vector<double> weight;
  double bias = 0;
  bool converged = false;
  int iterations = 0;
};

template <class T>
struct SharedGram;

/// Newton's method with a line search to the minimum along each direction (on the examples' scores, so it
/// costs next to nothing: with fewer examples than dimensions the classes are separable, and plain Newton
/// steps move the margins by one at a time), for any number of labellings of the same examples. A factored
/// Hessian serves again while the curvatures change by a few percent. With fewer examples than dimensions it
/// works on the Gram matrix (w = X^T a, the representer theorem; the step as in Rasmussen & Williams 2006,
/// algorithm 3.1, with a free bias), which is computed once, as is the first Hessian, which no label changes;
/// otherwise on the weights.
///
/// The Gram matrix and its factors are in single precision, which halves their time, and only give
/// directions: scores and gradient are computed from the examples in double precision before a fit counts as
/// converged. If that is not enough, everything is done again in double, on a Gram matrix that is then
/// reused.
class LogisticRegression {
 public:
  /// `x` [examples, dimensions] must outlive this object.
  LogisticRegression(const StandardisedExamples& x, const LogisticOptions& options, ThreadTeam& team);
  ~LogisticRegression();

  /// `labels`: 0 or 1 for each example; both must occur, or no optimum exists (then an Error is thrown).
  /// `team` shares the factorisations and may be null; several threads may fit at once, then each without
  /// one. `on_iteration`, if given, is called with the number of iterations done; `tolerance`, if given,
  /// takes the place of the options'.
  LogisticFit fit(const std::vector<uint8_t>& labels, ThreadTeam* team, const CancelToken& cancel,
                  const std::function<void(int)>& on_iteration = {},
                  std::optional<double> tolerance = std::nullopt) const;

  bool uses_gram() const { return x_.rows() < x_.depth(); }

 private:
  const SharedGram<double>& in_double(ThreadTeam* team) const;

  const StandardisedExamples& x_;
  LogisticOptions options_;
  PanelMatrix<double> whole_;                           ///< x; empty if the Gram matrix is used
  std::unique_ptr<SharedGram<float>> single_;           ///< null if single precision is not enough
  mutable std::unique_ptr<SharedGram<double>> double_;  ///< null until it is needed
  mutable std::mutex mutex_;                            ///< of double_
};

/// 1 / (1 + exp(-z)) without overflow.
double sigmoid(double z);

}  // namespace tapline::probes
