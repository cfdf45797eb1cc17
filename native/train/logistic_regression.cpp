#include "train/logistic_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

namespace tapline::train {

double sigmoid(double z) {
  if (z >= 0) return 1.0 / (1.0 + std::exp(-z));
  const double e = std::exp(z);
  return e / (1.0 + e);
}

namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The logistic loss of one example at margin m, and its derivatives; one exponential serves all three.
struct Logistic {
  explicit Logistic(double m) : margin(m), e(std::exp(-std::fabs(m))) {}

  double loss() const { return std::log1p(e) + std::max(0.0, -margin); }
  double slope() const { return -(margin >= 0 ? e : 1.0) / (1.0 + e); }
  double curvature() const { return e / ((1.0 + e) * (1.0 + e)); }

  double margin;
  double e;
};

/// The factor of an older Hessian gives a good direction while no curvature differs by more than this.
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

/// The state of a fit in one parametrisation, and its Newton direction. Vectors over examples have the padded
/// length; padding has score weight 0.
class Problem {
 public:
  virtual ~Problem() = default;

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
  virtual Vector weight() const = 0;
  virtual double bias() const = 0;
};

class GramProblem final : public Problem {
 public:
  GramProblem(const StandardisedExamples& x, const PanelMatrix& gram, double c, ThreadTeam* team)
      : x_(x),
        gram_(gram),
        team_(team),
        c_(c),
        size_(static_cast<size_t>(gram.rows())),
        system_(gram.rows(), gram.rows()) {
    scores.assign(size_, 0.0);
    direction_scores.assign(size_, 0.0);
    for (Vector* v : {&a_, &gram_a_, &r_, &gram_r_, &u_, &q_, &s_, &da_, &gram_da_}) v->assign(size_, 0.0);
  }

  void refresh() override {
    for (size_t i = 0; i < size_; ++i) scores[i] = gram_a_[i] + b_;
  }

  // The gradient by w is X^T r with r = residual + a / c, so its Euclidean norm is sqrt(r . K r).
  double gradient_bound(const Vector& residual) override {
    double bias_gradient = 0;
    for (size_t i = 0; i < size_; ++i) {
      r_[i] = residual[i] + a_[i] / c_;
      bias_gradient += residual[i];
    }
    times(gram_, r_.data(), gram_r_.data());
    return std::max(std::sqrt(std::max(0.0, dot(r_, gram_r_))), std::fabs(bias_gradient));
  }

  // Newton: (I/c + W K) da + W 1 db = -r and 1 . (a + da) = 0, with W the diagonal of curvatures and
  // (I/c + W K)^-1 v = c (v - c S B^-1 S K v),  S = W^(1/2),  B = I + c S K S (eigenvalues at least 1);
  // (I/c + W K)^-1 W 1 = c S B^-1 S 1.
  bool factor(const Vector& curvature) override {
    for (size_t i = 0; i < size_; ++i) s_[i] = std::sqrt(curvature[i]);
    constexpr int kWidth = PanelMatrix::kWidth;
    for (int p = 0; p < system_.panels(); ++p) {
      const double* from = gram_.panel(p);
      double* to = system_.panel(p);
      double scaled[kWidth];
      for (int i = 0; i < kWidth; ++i) scaled[i] = c_ * s_[static_cast<size_t>(p * kWidth + i)];
      best_kernels().scale_panel(from, scaled, s_.data(), (p + 1) * kWidth, to);
      for (int i = 0; i < kWidth; ++i) to[(p * kWidth + i) * kWidth + i] += 1.0;
    }
    cholesky_.emplace(system_, team_);
    if (!cholesky_->ok()) return false;
    q_ = s_;
    cholesky_->solve(q_.data());
    for (size_t i = 0; i < size_; ++i) q_[i] *= c_ * s_[i];
    return true;
  }

  void find_direction() override {
    for (size_t i = 0; i < size_; ++i) u_[i] = s_[i] * gram_r_[i];
    cholesky_->solve(u_.data());
    double sum_au = 0;
    double sum_q = 0;
    for (size_t i = 0; i < size_; ++i) {
      u_[i] = -c_ * (r_[i] - c_ * s_[i] * u_[i]);
      sum_au += a_[i] + u_[i];
      sum_q += q_[i];
    }
    db_ = sum_q > 0 ? sum_au / sum_q : 0.0;
    for (size_t i = 0; i < size_; ++i) da_[i] = u_[i] - q_[i] * db_;
    times(gram_, da_.data(), gram_da_.data());
    direction_norm = dot(da_, gram_da_);
    cross = dot(da_, gram_a_);
    for (size_t i = 0; i < size_; ++i) direction_scores[i] = gram_da_[i] + db_;
  }

  // K a moves along with a: no product of its own, and what rounding adds up to is far below the tolerance.
  void advance(double step) override {
    for (size_t i = 0; i < size_; ++i) {
      a_[i] += step * da_[i];
      gram_a_[i] += step * gram_da_[i];
    }
    b_ += step * db_;
  }

  Vector weight() const override {
    Vector w(static_cast<size_t>(x_.depth()));
    x_.transposed_times(a_.data(), w.data(), team_);
    return w;
  }
  double bias() const override { return b_; }

 private:
  const StandardisedExamples& x_;
  const PanelMatrix& gram_;
  ThreadTeam* team_;
  double c_;
  size_t size_;
  PanelMatrix system_;
  std::optional<Cholesky> cholesky_;
  Vector a_, gram_a_, r_, gram_r_, u_, q_, s_, da_, gram_da_;
  double b_ = 0;
  double db_ = 0;
};

class WeightProblem final : public Problem {
 public:
  WeightProblem(const PanelMatrix& x, double c, ThreadTeam* team)
      : x_(x),
        team_(team),
        c_(c),
        dimensions_(static_cast<size_t>(x.depth())),
        scaled_(x.depth() + 1, x.rows()),
        system_(round_up(x.depth() + 1, PanelMatrix::kWidth), round_up(x.depth() + 1, PanelMatrix::kWidth)) {
    const size_t examples = static_cast<size_t>(x.panels()) * PanelMatrix::kWidth;
    scores.assign(examples, 0.0);
    direction_scores.assign(examples, 0.0);
    w_.assign(dimensions_, 0.0);
    gradient_.assign(dimensions_ + 1, 0.0);
    direction_.assign(static_cast<size_t>(system_.rows()), 0.0);
  }

  void refresh() override {
    times(x_, w_.data(), scores.data());
    for (double& score : scores) score += b_;
  }

  double gradient_bound(const Vector& residual) override {
    transposed_times(x_, residual.data(), gradient_.data());
    gradient_[dimensions_] = 0;
    for (const double value : residual) gradient_[dimensions_] += value;
    double bound = std::fabs(gradient_[dimensions_]);
    for (size_t k = 0; k < dimensions_; ++k) {
      gradient_[k] += w_[k] / c_;
      bound = std::max(bound, std::fabs(gradient_[k]));
    }
    return bound;
  }

  bool factor(const Vector& curvature) override {
    constexpr int kWidth = PanelMatrix::kWidth;
    // Rows of `scaled_` are dimensions (the last one the constant 1 of the bias), columns examples.
    for (int i = 0; i < x_.rows(); ++i) {
      const double s = std::sqrt(curvature[static_cast<size_t>(i)]);
      const double* from = x_.panel(i / kWidth) + i % kWidth;
      for (int k = 0; k < x_.depth(); ++k) scaled_.at(k, i) = s * from[static_cast<size_t>(k) * kWidth];
      scaled_.at(x_.depth(), i) = s;
    }
    gram_lower(scaled_, system_);
    for (int k = 0; k < system_.rows(); ++k) {
      if (k < x_.depth()) {
        system_.at(k, k) += 1.0 / c_;
      } else {
        // The bias has no penalty: where all curvatures vanish, a trace of one keeps the step finite.
        system_.at(k, k) += k == x_.depth() ? 1e-12 : 1.0;
      }
    }
    cholesky_.emplace(system_, team_);
    return cholesky_->ok();
  }

  void find_direction() override {
    std::fill(direction_.begin(), direction_.end(), 0.0);
    for (size_t k = 0; k <= dimensions_; ++k) direction_[k] = -gradient_[k];
    cholesky_->solve(direction_.data());
    times(x_, direction_.data(), direction_scores.data());
    for (double& score : direction_scores) score += direction_[dimensions_];
    cross = 0;
    direction_norm = 0;
    for (size_t k = 0; k < dimensions_; ++k) {
      cross += w_[k] * direction_[k];
      direction_norm += direction_[k] * direction_[k];
    }
  }

  void advance(double step) override {
    for (size_t k = 0; k < dimensions_; ++k) w_[k] += step * direction_[k];
    b_ += step * direction_[dimensions_];
  }

  Vector weight() const override { return w_; }
  double bias() const override { return b_; }

 private:
  const PanelMatrix& x_;
  ThreadTeam* team_;
  double c_;
  size_t dimensions_;
  PanelMatrix scaled_;
  PanelMatrix system_;
  std::optional<Cholesky> cholesky_;
  Vector w_, gradient_, direction_;
  double b_ = 0;
};

/// The step to the minimum of the objective along the direction, to some digits: Newton's method on its
/// derivative, kept inside an interval that holds the zero. `slope` < 0 is the derivative at 0.
double line_minimum(const Problem& problem, const Vector& signs, double c, double slope) {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  double step = 1;
  for (int round = 0; round < 60; ++round) {
    double first = (problem.cross + step * problem.direction_norm) / c;
    double second = problem.direction_norm / c;
    double size = std::fabs(first);
    for (size_t i = 0; i < signs.size(); ++i) {
      const double change = problem.direction_scores[i];
      const Logistic at(signs[i] * (problem.scores[i] + step * change));
      const double part = signs[i] * at.slope() * change;
      first += part;
      size += std::fabs(part);
      second += at.curvature() * change * change;
    }
    // A minimum near enough: its derivative is small beside the one at the start, or lost in rounding.
    if (std::fabs(first) <= std::max(-1e-3 * slope, 1e-14 * size)) return step;
    (first < 0 ? low : high) = step;
    double next = step - first / second;
    const double limit = std::min(high, 4 * std::max(low, 1.0));
    if (!(next > low && next < high && next <= limit)) next = high <= limit ? (low + high) / 2 : limit;
    if (next == step || next == low || next == high) return low;
    step = next;
  }
  return low;
}

}  // namespace

LogisticRegression::LogisticRegression(const StandardisedExamples& x, const LogisticOptions& options,
                                       ThreadTeam& team)
    : x_(x),
      options_(options),
      gram_(x.rows() < x.depth()
                ? gram(
                      x.rows(), x.depth(),
                      [&](int panel, int from, int count, double* to) { x.fill(panel, from, count, to); },
                      team)
                : PanelMatrix(0, 0)),
      whole_(uses_gram() ? PanelMatrix(0, 0) : PanelMatrix(x.rows(), x.depth())) {
  team.parallel_for(whole_.panels(), [&](int p) { x.fill(p, 0, x.depth(), whole_.panel(p)); });
}

LogisticFit LogisticRegression::fit(const std::vector<uint8_t>& labels, ThreadTeam* team,
                                    const CancelToken& cancel, const std::function<void(int)>& on_iteration,
                                    std::optional<double> tolerance) const {
  const int examples = x_.rows();
  const int ones = static_cast<int>(std::count(labels.begin(), labels.end(), uint8_t{1}));
  if (static_cast<int>(labels.size()) != examples || ones == 0 || ones == examples) {
    throw Error(ErrorCode::kInvalidArgument,
                "A logistic regression needs training examples of both classes, but " + std::to_string(ones) +
                    " of " + std::to_string(examples) + " have label 1.");
  }
  std::unique_ptr<Problem> problem;
  if (uses_gram()) {
    problem = std::make_unique<GramProblem>(x_, gram_, options_.c, team);
  } else {
    problem = std::make_unique<WeightProblem>(whole_, options_.c, team);
  }

  const size_t count = static_cast<size_t>(examples);
  Vector signs(count);
  for (size_t i = 0; i < count; ++i) signs[i] = labels[i] ? 1.0 : -1.0;
  Vector residual(problem->scores.size(), 0.0);
  Vector curvature(problem->scores.size(), 0.0);
  Vector factored(problem->scores.size(), 0.0);

  LogisticFit fit;
  for (;;) {
    cancel.check();
    problem->refresh();
    for (size_t i = 0; i < count; ++i) {
      const Logistic at(signs[i] * problem->scores[i]);
      residual[i] = signs[i] * at.slope();
      curvature[i] = at.curvature();
    }
    const double bound = problem->gradient_bound(residual);
    if (bound <= tolerance.value_or(options_.tolerance)) {
      fit.converged = true;
      break;
    }
    if (fit.iterations == options_.max_iterations) break;
    if (fit.iterations == 0 || relative_change(curvature, factored, count) > kReuse) {
      if (!problem->factor(curvature)) break;
      factored = curvature;
    }
    problem->find_direction();
    double slope = problem->cross / options_.c;
    for (size_t i = 0; i < count; ++i) slope += residual[i] * problem->direction_scores[i];
    if (!(slope < 0)) break;  // rounding has the last word: no better point can be told from this one
    const double step = line_minimum(*problem, signs, options_.c, slope);
    if (!(step > 0)) break;
    problem->advance(step);
    ++fit.iterations;
    if (on_iteration) on_iteration(fit.iterations);
  }
  fit.weight = problem->weight();
  fit.bias = problem->bias();
  return fit;
}

}  // namespace tapline::train
