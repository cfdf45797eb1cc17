#include "train/logistic_regression.h"

#include <algorithm>
#include <cmath>
#include <memory>

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

double log1p_exp(double z) {
  return z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
}

/// The state of a fit in one parametrisation, and its Newton direction. Vectors over examples have the padded
/// length; padding has score weight 0.
class Problem {
 public:
  virtual ~Problem() = default;

  Vector scores;            // w . x_i + b
  Vector direction_scores;  // the same for the direction
  double norm = 0;          // |w|^2
  double cross = 0;         // w . dw
  double direction_norm = 0;

  /// Brings scores and norm up to date with the state.
  virtual void refresh() = 0;
  /// Upper bound of the gradient's infinity norm, from the derivative of the losses by the scores.
  virtual double gradient_bound(const Vector& residual) = 0;
  /// Newton's direction; call after gradient_bound with the same residual. False if the Hessian does not
  /// factor.
  virtual bool find_direction(const Vector& residual, const Vector& curvature) = 0;
  virtual void advance(double step) = 0;
  virtual Vector weight() const = 0;
  virtual double bias() const = 0;
};

class GramProblem final : public Problem {
 public:
  GramProblem(const PanelMatrix& x, const PanelMatrix& gram, double c)
      : x_(x),
        gram_(gram),
        c_(c),
        size_(static_cast<size_t>(gram.rows())),
        system_(gram.rows(), gram.rows()) {
    scores.assign(size_, 0.0);
    direction_scores.assign(size_, 0.0);
    for (Vector* v : {&a_, &gram_a_, &r_, &gram_r_, &u_, &q_, &work_, &da_}) v->assign(size_, 0.0);
  }

  void refresh() override {
    times(gram_, a_.data(), gram_a_.data());
    norm = dot(a_, gram_a_);
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
  // (I/c + W K)^-1 v = c (v - c S B^-1 S K v),  S = W^(1/2),  B = I + c S K S (eigenvalues at least 1).
  bool find_direction(const Vector& /*residual*/, const Vector& curvature) override {
    Vector& s = work_;
    for (size_t i = 0; i < size_; ++i) s[i] = std::sqrt(curvature[i]);
    constexpr int kWidth = PanelMatrix::kWidth;
    for (int p = 0; p < system_.panels(); ++p) {
      const double* from = gram_.panel(p);
      double* to = system_.panel(p);
      double scaled[kWidth];
      for (int i = 0; i < kWidth; ++i) scaled[i] = c_ * s[static_cast<size_t>(p * kWidth + i)];
      for (int j = 0; j < (p + 1) * kWidth; ++j) {
        for (int i = 0; i < kWidth; ++i) {
          to[j * kWidth + i] = from[j * kWidth + i] * scaled[i] * s[static_cast<size_t>(j)];
        }
      }
      for (int i = 0; i < kWidth; ++i) to[(p * kWidth + i) * kWidth + i] += 1.0;
    }
    const Cholesky cholesky(system_);
    if (!cholesky.ok()) return false;

    times(gram_, curvature.data(), q_.data());
    for (size_t i = 0; i < size_; ++i) {
      u_[i] = s[i] * gram_r_[i];
      q_[i] *= s[i];
    }
    cholesky.solve(u_.data());
    cholesky.solve(q_.data());
    double sum_au = 0;
    double sum_q = 0;
    for (size_t i = 0; i < size_; ++i) {
      u_[i] = -c_ * (r_[i] - c_ * s[i] * u_[i]);
      q_[i] = c_ * (curvature[i] - c_ * s[i] * q_[i]);
      sum_au += a_[i] + u_[i];
      sum_q += q_[i];
    }
    db_ = sum_q > 0 ? sum_au / sum_q : 0.0;
    for (size_t i = 0; i < size_; ++i) da_[i] = u_[i] - q_[i] * db_;
    times(gram_, da_.data(), direction_scores.data());
    direction_norm = dot(da_, direction_scores);
    cross = dot(da_, gram_a_);
    for (size_t i = 0; i < size_; ++i) direction_scores[i] += db_;
    return true;
  }

  void advance(double step) override {
    for (size_t i = 0; i < size_; ++i) a_[i] += step * da_[i];
    b_ += step * db_;
  }

  Vector weight() const override {
    Vector w(static_cast<size_t>(x_.depth()));
    transposed_times(x_, a_.data(), w.data());
    return w;
  }
  double bias() const override { return b_; }

 private:
  const PanelMatrix& x_;
  const PanelMatrix& gram_;
  double c_;
  size_t size_;
  PanelMatrix system_;
  Vector a_, gram_a_, r_, gram_r_, u_, q_, work_, da_;
  double b_ = 0;
  double db_ = 0;
};

class WeightProblem final : public Problem {
 public:
  WeightProblem(const PanelMatrix& x, double c)
      : x_(x),
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
    norm = dot(w_, w_);
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

  bool find_direction(const Vector& /*residual*/, const Vector& curvature) override {
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
    const Cholesky cholesky(system_);
    if (!cholesky.ok()) return false;
    std::fill(direction_.begin(), direction_.end(), 0.0);
    for (size_t k = 0; k <= dimensions_; ++k) direction_[k] = -gradient_[k];
    cholesky.solve(direction_.data());
    times(x_, direction_.data(), direction_scores.data());
    for (double& score : direction_scores) score += direction_[dimensions_];
    cross = 0;
    direction_norm = 0;
    for (size_t k = 0; k < dimensions_; ++k) {
      cross += w_[k] * direction_[k];
      direction_norm += direction_[k] * direction_[k];
    }
    return true;
  }

  void advance(double step) override {
    for (size_t k = 0; k < dimensions_; ++k) w_[k] += step * direction_[k];
    b_ += step * direction_[dimensions_];
  }

  Vector weight() const override { return w_; }
  double bias() const override { return b_; }

 private:
  const PanelMatrix& x_;
  double c_;
  size_t dimensions_;
  PanelMatrix scaled_;
  PanelMatrix system_;
  Vector w_, gradient_, direction_;
  double b_ = 0;
};

}  // namespace

LogisticRegression::LogisticRegression(const PanelMatrix& x, const LogisticOptions& options, ThreadTeam& team)
    : x_(x), options_(options), gram_(x.rows() < x.depth() ? gram(x, team) : PanelMatrix(0, 0)) {}

LogisticFit LogisticRegression::fit(const std::vector<uint8_t>& labels, const CancelToken& cancel,
                                    const std::function<void(int)>& on_iteration) const {
  const int examples = x_.rows();
  const int ones = static_cast<int>(std::count(labels.begin(), labels.end(), uint8_t{1}));
  if (static_cast<int>(labels.size()) != examples || ones == 0 || ones == examples) {
    throw Error(ErrorCode::kInvalidArgument,
                "A logistic regression needs training examples of both classes, but " + std::to_string(ones) +
                    " of " + std::to_string(examples) + " have label 1.");
  }
  std::unique_ptr<Problem> problem;
  if (uses_gram()) {
    problem = std::make_unique<GramProblem>(x_, gram_, options_.c);
  } else {
    problem = std::make_unique<WeightProblem>(x_, options_.c);
  }

  const size_t count = static_cast<size_t>(examples);
  Vector residual(problem->scores.size(), 0.0);
  Vector curvature(problem->scores.size(), 0.0);
  const auto loss_at = [&](double step) {
    double loss = (problem->norm + 2 * step * problem->cross + step * step * problem->direction_norm) /
                  (2 * options_.c);
    for (size_t i = 0; i < count; ++i) {
      const double score = problem->scores[i] + (step == 0 ? 0.0 : step * problem->direction_scores[i]);
      loss += log1p_exp(labels[i] ? -score : score);
    }
    return loss;
  };

  LogisticFit fit;
  for (;;) {
    cancel.check();
    problem->refresh();
    for (size_t i = 0; i < count; ++i) {
      const double p = sigmoid(problem->scores[i]);
      residual[i] = labels[i] ? -sigmoid(-problem->scores[i]) : p;
      curvature[i] = p * sigmoid(-problem->scores[i]);
    }
    const double bound = problem->gradient_bound(residual);
    if (bound <= options_.tolerance) {
      fit.converged = true;
      break;
    }
    if (fit.iterations == options_.max_iterations || !problem->find_direction(residual, curvature)) break;
    double slope = problem->cross / options_.c;
    for (size_t i = 0; i < count; ++i) slope += residual[i] * problem->direction_scores[i];
    if (!(slope < 0)) break;  // rounding has the last word: no better point can be told from this one
    // Armijo's rule; within rounding of the optimum losses cannot be compared, and Newton's full step is
    // right.
    problem->norm = std::max(problem->norm, 0.0);
    double step = 1.0;
    const double loss = loss_at(0);
    if (-slope > 1e-11 * (1.0 + loss)) {
      while (step > 1e-10 && !(loss_at(step) <= loss + 1e-4 * step * slope)) step /= 2;
      if (step <= 1e-10) break;
    }
    problem->advance(step);
    ++fit.iterations;
    if (on_iteration) on_iteration(fit.iterations);
  }
  fit.weight = problem->weight();
  fit.bias = problem->bias();
  return fit;
}

}  // namespace tapline::train
