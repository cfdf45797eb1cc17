#pragma once

#include <memory>
#include <vector>

#include "probes/gram_factor.h"

namespace tapline::probes {

using Vector = std::vector<double>;

/// The state of a fit in one parametrisation, and its Newton direction. Vectors over examples have the padded
/// length; padding has score weight 0.
class NewtonProblem {
 public:
  virtual ~NewtonProblem() = default;

  Vector scores;            // w . x_i + b
  Vector direction_scores;  // the same for the direction
  double cross = 0;         // w . dw
  double direction_norm = 0;

  /// Brings the scores up to date with the state.
  virtual void refresh() = 0;
  /// Upper bound of the gradient's infinity norm, from the derivative of the losses by the scores.
  virtual double gradient_bound(const Vector& residual) = 0;
  /// Factors the Hessian at these curvatures. Returns false if it does not factor.
  virtual bool factor(const Vector& curvature) = 0;
  /// Newton's direction with the factored Hessian; call after gradient_bound of the residual.
  virtual void find_direction() = 0;
  virtual void advance(double step) = 0;
  /// Whether scores are approximate and gradient_bound is an estimate, until renew() computes the scores and
  /// exact_gradient() the gradient's infinity norm from the examples; and the gradient down to which the
  /// approximate ones are good enough, so that no examples are read for them.
  virtual bool approximate() const { return false; }
  virtual double rough_gradient() const { return 0; }
  virtual void renew() {}
  virtual double exact_gradient(const Vector& residual) { return gradient_bound(residual); }
  virtual Vector weight() const = 0;
  virtual double bias() const = 0;
};

/// A fit on the Gram matrix K: w = X^T a. With K in single precision, intermediate scores have a relative
/// error of 1e-7; renew() computes them from the examples, so that the error is only that of later changes.
template <class T>
std::unique_ptr<NewtonProblem> gram_problem(const StandardisedExamples& x, const SharedGram<T>& shared,
                                            double c, ThreadTeam* team);

/// A fit on the weights and the bias. `x` must outlive it.
std::unique_ptr<NewtonProblem> weight_problem(const PanelMatrix<double>& x, double c, ThreadTeam* team);

}  // namespace tapline::probes
