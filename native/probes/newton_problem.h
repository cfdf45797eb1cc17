#pragma once

#include <vector>

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
  /// Factors the Hessian at these curvatures. False where it does not factor.
  virtual bool factor(const Vector& curvature) = 0;
  /// Newton's direction with the factored Hessian; call after gradient_bound of the residual.
  virtual void find_direction() = 0;
  virtual void advance(double step) = 0;
  /// Whether scores along the way are rough and gradient_bound is a guess, until renew() computes the scores
  /// and exact_gradient() the gradient's infinity norm from the examples; and down to which gradient the
  /// rough ones do, so that no examples are read for them.
  virtual bool approximate() const { return false; }
  virtual double rough_gradient() const { return 0; }
  virtual void renew() {}
  virtual double exact_gradient(const Vector& residual) { return gradient_bound(residual); }
  virtual Vector weight() const = 0;
  virtual double bias() const = 0;
};

}  // namespace tapline::probes
