#include "probes/logistic_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "probes/newton_problem.h"

namespace tapline::probes {

double sigmoid(double z) {
  if (z >= 0) return 1.0 / (1.0 + std::exp(-z));
  const double e = std::exp(z);
  return e / (1.0 + e);
}

namespace {

/// Of the logistic loss of one example at margin m, both derivatives; one exponential serves them.
struct Logistic {
  explicit Logistic(double m) : margin(m), e(std::exp(-std::fabs(m))) {}

  double slope() const { return -(margin >= 0 ? e : 1.0) / (1.0 + e); }
  double curvature() const { return e / ((1.0 + e) * (1.0 + e)); }

  double margin;
  double e;
};

/// The factor of an older Hessian gives a good direction if no curvature differs by more than this.
constexpr double kReuse = 0.05;

/// Largest relative difference of curvatures; infinite where one vanished.
double relative_change(const Vector& curvature, const Vector& factored, size_t count) {
  double change = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!(factored[i] > 0)) return std::numeric_limits<double>::infinity();
    change = std::max(change, std::fabs(curvature[i] / factored[i] - 1));
  }
  return change;
}

/// The step to the minimum of the objective along the direction, to some digits: Newton's method on its
/// derivative, kept inside an interval that holds the zero. `slope` < 0 is the derivative at 0.
double line_minimum(const NewtonProblem& problem, const Vector& signs, double c, double slope) {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  double step = 1;
  for (int round = 0; round < 60; ++round) {
    double slope_here = (problem.cross + step * problem.direction_norm) / c;
    double curvature = problem.direction_norm / c;
    double size = std::fabs(slope_here);
    for (size_t i = 0; i < signs.size(); ++i) {
      const double change = problem.direction_scores[i];
      const Logistic at(signs[i] * (problem.scores[i] + step * change));
      const double part = signs[i] * at.slope() * change;
      slope_here += part;
      size += std::fabs(part);
      curvature += at.curvature() * change * change;
    }
    // Close enough to the minimum: the derivative is small compared with the initial one, or lost in
    // rounding.
    if (std::fabs(slope_here) <= std::max(-1e-3 * slope, 1e-14 * size)) return step;
    (slope_here < 0 ? low : high) = step;
    double next = step - slope_here / curvature;
    const double limit = std::min(high, 4 * std::max(low, 1.0));
    if (!(next > low && next < high && next <= limit)) next = high <= limit ? (low + high) / 2 : limit;
    if (next == step || next == low || next == high) return low;
    step = next;
  }
  return low;
}

LogisticFit minimise(NewtonProblem& problem, const std::vector<uint8_t>& labels,
                     const LogisticOptions& options, double tolerance, const CancelToken& cancel,
                     const std::function<void(int)>& on_iteration) {
  const size_t count = labels.size();
  Vector signs(count);
  for (size_t i = 0; i < count; ++i) signs[i] = labels[i] ? 1.0 : -1.0;
  Vector residual(problem.scores.size(), 0.0);
  Vector curvature(problem.scores.size(), 0.0);
  Vector factored(problem.scores.size(), 0.0);
  LogisticFit fit;

  const auto evaluate = [&] {
    problem.refresh();
    for (size_t i = 0; i < count; ++i) {
      const Logistic at(signs[i] * problem.scores[i]);
      residual[i] = signs[i] * at.slope();
      curvature[i] = at.curvature();
    }
  };
  // Returns false if rounding prevents further progress.
  const auto newton_step = [&] {
    if (fit.iterations == 0 || relative_change(curvature, factored, count) > kReuse) {
      if (!problem.factor(curvature)) return false;
      factored = curvature;
    }
    problem.find_direction();
    double slope = problem.cross / options.c;
    for (size_t i = 0; i < count; ++i) slope += residual[i] * problem.direction_scores[i];
    if (!(slope < 0)) return false;
    const double step = line_minimum(problem, signs, options.c, slope);
    if (!(step > 0)) return false;
    problem.advance(step);
    return true;
  };

  double goal = std::max(tolerance, problem.rough_gradient());
  bool renewed = false;
  for (;;) {
    cancel.check();
    evaluate();
    const double bound = problem.gradient_bound(residual);
    if (bound > goal && fit.iterations < options.max_iterations && newton_step()) {
      renewed = false;
      ++fit.iterations;
      if (on_iteration) on_iteration(fit.iterations);
      continue;
    }
    if (!problem.approximate()) {
      fit.converged = bound <= tolerance;
      break;
    }
    if (renewed) break;
    problem.renew();
    renewed = true;
    evaluate();
    if (problem.exact_gradient(residual) <= tolerance) {
      fit.converged = true;
      break;
    }
    goal = std::min(tolerance, goal / 4);
  }
  fit.weight = problem.weight();
  fit.bias = problem.bias();
  return fit;
}

/// In single precision, the error of K is about 2^-24 of its trace. Times c and a curvature of at most 1/4,
/// that is the error of the factor of a Hessian whose eigenvalues are at least 1.
constexpr double kWrongest = 1.0;

bool single_is_enough(const StandardisedExamples& x, double c) {
  const double trace = static_cast<double>(x.rows()) * x.depth();
  return c / 4 * trace * 0x1p-24 <= kWrongest;
}

}  // namespace

LogisticRegression::LogisticRegression(const StandardisedExamples& x, const LogisticOptions& options,
                                       ThreadTeam& team)
    : x_(x), options_(options), whole_(uses_gram() ? 0 : x.rows(), uses_gram() ? 0 : x.depth()) {
  if (!uses_gram()) {
    team.parallel_for(whole_.panels(), [&](int p) { x.fill(p, 0, x.depth(), whole_.panel(p)); });
    return;
  }
  if (single_is_enough(x, options.c)) single_ = std::make_unique<SharedGram<float>>(x, options.c, team);
  if (single_ && !single_->first.ok()) single_.reset();
  if (!single_) double_ = std::make_unique<SharedGram<double>>(x, options.c, team);
}

LogisticRegression::~LogisticRegression() = default;

const SharedGram<double>& LogisticRegression::in_double(ThreadTeam* team) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!double_) {
    ThreadTeam alone(1);
    double_ = std::make_unique<SharedGram<double>>(x_, options_.c, team != nullptr ? *team : alone);
  }
  return *double_;
}

LogisticFit LogisticRegression::fit(const std::vector<uint8_t>& labels, ThreadTeam* team,
                                    const CancelToken& cancel, const std::function<void(int)>& on_iteration,
                                    std::optional<double> tolerance) const {
  const int examples = x_.rows();
  const int ones = static_cast<int>(std::count(labels.begin(), labels.end(), uint8_t{1}));
  if (static_cast<int>(labels.size()) != examples || ones == 0 || ones == examples)
    throw_error(ErrorCode::kInvalidArgument,
                "A logistic regression needs training examples of both classes, but ", ones, " of ", examples,
                " have label 1.");
  int before = 0;
  const auto run = [&](const std::unique_ptr<NewtonProblem>& problem) {
    LogisticFit fit = minimise(*problem, labels, options_, tolerance.value_or(options_.tolerance), cancel,
                               [&](int iteration) {
                                 if (on_iteration) on_iteration(before + iteration);
                               });
    fit.iterations += before;
    return fit;
  };
  if (!uses_gram()) return run(weight_problem(whole_, options_.c, team));
  if (single_) {
    LogisticFit fit = run(gram_problem(x_, *single_, options_.c, team));
    if (fit.converged) return fit;
    before = fit.iterations;
  }
  // The result must be exact in double precision: the rare cases that did not converge start again in double.
  return run(gram_problem(x_, in_double(team), options_.c, team));
}

}  // namespace tapline::probes
