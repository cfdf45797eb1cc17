#include "train/logistic_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>

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
  /// Whether scores along the way are rough and gradient_bound is a guess, until renew() computes the scores
  /// and exact_gradient() the gradient's infinity norm from the examples.
  virtual bool approximate() const { return false; }
  virtual void renew() {}
  virtual double exact_gradient(const Vector& residual) { return gradient_bound(residual); }
  virtual Vector weight() const = 0;
  virtual double bias() const = 0;
};

/// B = I + c S K S at some curvatures, factored; S is the diagonal of their square roots.
template <class T>
class GramFactor {
 public:
  GramFactor(const PanelMatrix<T>& gram, double c)
      : gram_(gram), c_(c), root_(static_cast<size_t>(gram.rows())), system_(gram.rows(), gram.rows()) {}

  /// False where B does not factor.
  bool factor(const Vector& curvature, ThreadTeam* team) {
    constexpr int kWidth = PanelMatrix<T>::kWidth;
    for (size_t i = 0; i < root_.size(); ++i) root_[i] = static_cast<T>(std::sqrt(curvature[i]));
    for (int p = 0; p < system_.panels(); ++p) {
      T* to = system_.panel(p);
      T scaled[kWidth];
      for (int i = 0; i < kWidth; ++i) {
        scaled[i] = static_cast<T>(c_) * root_[static_cast<size_t>(p * kWidth + i)];
      }
      panel_kernels<T>().scale(gram_.panel(p), scaled, root_.data(), (p + 1) * kWidth, to);
      for (int i = 0; i < kWidth; ++i) to[(p * kWidth + i) * kWidth + i] += 1;
    }
    cholesky_.emplace(system_, team);
    if (!cholesky_->ok()) return false;
    ones_.assign(root_.size(), 0.0);
    solve(Vector(root_.size(), 1.0), ones_);
    return true;
  }

  bool ok() const { return cholesky_ && cholesky_->ok(); }

  /// y = c S B^-1 S v
  void solve(const Vector& v, Vector& y) const {
    std::vector<T> scaled(root_.size());
    for (size_t i = 0; i < root_.size(); ++i) scaled[i] = root_[i] * static_cast<T>(v[i]);
    cholesky_->solve(scaled.data());
    for (size_t i = 0; i < root_.size(); ++i) y[i] = c_ * static_cast<double>(root_[i] * scaled[i]);
  }

  /// The same of a vector of ones.
  const Vector& solved_ones() const { return ones_; }

 private:
  const PanelMatrix<T>& gram_;
  double c_;
  std::vector<T> root_;
  PanelMatrix<T> system_;
  std::optional<Cholesky<T>> cholesky_;
  Vector ones_;
};

}  // namespace

/// What all labellings of the same examples share.
template <class T>
struct SharedGram {
  SharedGram(const StandardisedExamples& x, double c, ThreadTeam& team)
      : gram(train::gram<T>(
            x.rows(), x.depth(),
            [&](int panel, int from, int count, T* to) { x.fill(panel, from, count, to); }, team)),
        first(gram, c) {
    Vector curvature(static_cast<size_t>(gram.rows()), 0.0);
    std::fill_n(curvature.begin(), x.rows(), 0.25);
    first.factor(curvature, &team);
  }

  PanelMatrix<T> gram;
  GramFactor<T> first;  ///< at scores of zero, where every fit begins: curvatures of 1/4, and 0 of padding
};

namespace {

/// With K in single precision, the scores along the way are those of a K that is wrong in the seventh digit.
/// renew() computes them from the examples; what K gets wrong then is only what moved since.
template <class T>
class GramProblem final : public Problem {
 public:
  GramProblem(const StandardisedExamples& x, const SharedGram<T>& shared, double c, ThreadTeam* team)
      : x_(x),
        gram_(shared.gram),
        first_(shared.first),
        team_(team),
        c_(c),
        size_(static_cast<size_t>(gram_.rows())),
        from_(size_),
        to_(size_) {
    scores.assign(size_, 0.0);
    direction_scores.assign(size_, 0.0);
    for (Vector* v : {&a_, &gram_a_, &r_, &gram_r_, &u_, &da_, &gram_da_}) v->assign(size_, 0.0);
  }

  bool approximate() const override { return sizeof(T) < sizeof(double); }

  void refresh() override {
    for (size_t i = 0; i < size_; ++i) scores[i] = gram_a_[i] + b_;
  }

  // The gradient by w is X^T r with r = residual + a / c, so its Euclidean norm is sqrt(r . K r).
  double gradient_bound(const Vector& residual) override {
    const double bias_gradient = find_r(residual);
    gram_times(r_, gram_r_);
    return std::max(std::sqrt(std::max(0.0, dot(r_, gram_r_))), std::fabs(bias_gradient));
  }

  void renew() override {
    weight_.resize(static_cast<size_t>(x_.depth()));
    x_.transposed_times(a_.data(), weight_.data(), team_);
    x_.times(weight_, gram_a_.data(), team_);
  }

  double exact_gradient(const Vector& residual) override {
    double bound = std::fabs(find_r(residual));
    Vector gradient(static_cast<size_t>(x_.depth()));
    x_.transposed_times(r_.data(), gradient.data(), team_);
    for (const double value : gradient) bound = std::max(bound, std::fabs(value));
    return bound;
  }

  // The first curvatures that are factored are always those of zero scores.
  bool factor(const Vector& curvature) override {
    if (factor_ == nullptr) {
      factor_ = &first_;
      return first_.ok();
    }
    if (!own_) own_.emplace(gram_, c_);
    factor_ = &*own_;
    return own_->factor(curvature, team_);
  }

  // Newton: (I/c + W K) da + W 1 db = -r and 1 . (a + da) = 0, with W the diagonal of curvatures and
  // (I/c + W K)^-1 v = c (v - c S B^-1 S K v),  S = W^(1/2),  B = I + c S K S (eigenvalues at least 1);
  // (I/c + W K)^-1 W 1 = c S B^-1 S 1.
  void find_direction() override {
    factor_->solve(gram_r_, u_);
    const Vector& q = factor_->solved_ones();
    double sum_au = 0;
    double sum_q = 0;
    for (size_t i = 0; i < size_; ++i) {
      u_[i] = -c_ * (r_[i] - u_[i]);
      sum_au += a_[i] + u_[i];
      sum_q += q[i];
    }
    db_ = sum_q > 0 ? sum_au / sum_q : 0.0;
    for (size_t i = 0; i < size_; ++i) da_[i] = u_[i] - q[i] * db_;
    gram_times(da_, gram_da_);
    direction_norm = dot(da_, gram_da_);
    // Not da . K a: near the minimum this and the slope of the losses cancel, so both take the same K da.
    cross = dot(a_, gram_da_);
    for (size_t i = 0; i < size_; ++i) direction_scores[i] = gram_da_[i] + db_;
  }

  // K a moves along with a: no product of its own.
  void advance(double step) override {
    for (size_t i = 0; i < size_; ++i) {
      a_[i] += step * da_[i];
      gram_a_[i] += step * gram_da_[i];
    }
    b_ += step * db_;
    weight_.clear();
  }

  Vector weight() const override {
    if (!weight_.empty()) return weight_;
    Vector w(static_cast<size_t>(x_.depth()));
    x_.transposed_times(a_.data(), w.data(), team_);
    return w;
  }
  double bias() const override { return b_; }

 private:
  // Returns the gradient by the bias.
  double find_r(const Vector& residual) {
    double sum = 0;
    for (size_t i = 0; i < size_; ++i) {
      r_[i] = residual[i] + a_[i] / c_;
      sum += residual[i];
    }
    return sum;
  }

  // y = K v
  void gram_times(const Vector& v, Vector& y) {
    for (size_t i = 0; i < size_; ++i) from_[i] = static_cast<T>(v[i]);
    times(gram_, from_.data(), to_.data());
    std::copy(to_.begin(), to_.end(), y.begin());
  }

  const StandardisedExamples& x_;
  const PanelMatrix<T>& gram_;
  const GramFactor<T>& first_;
  ThreadTeam* team_;
  double c_;
  size_t size_;
  std::vector<T> from_, to_;
  std::optional<GramFactor<T>> own_;
  const GramFactor<T>* factor_ = nullptr;
  Vector a_, gram_a_, r_, gram_r_, u_, da_, gram_da_;
  Vector weight_;  // of a_; empty where a_ has moved since
  double b_ = 0;
  double db_ = 0;
};

class WeightProblem final : public Problem {
 public:
  WeightProblem(const PanelMatrix<double>& x, double c, ThreadTeam* team)
      : x_(x),
        team_(team),
        c_(c),
        dimensions_(static_cast<size_t>(x.depth())),
        system_(round_up(x.depth() + 1, PanelMatrix<double>::kWidth),
                round_up(x.depth() + 1, PanelMatrix<double>::kWidth)) {
    const size_t examples = static_cast<size_t>(x.padded());
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
    constexpr int kWidth = PanelMatrix<double>::kWidth;
    roots_.resize(static_cast<size_t>(x_.rows()));
    for (size_t i = 0; i < roots_.size(); ++i) roots_[i] = std::sqrt(curvature[i]);
    // y y^T, where y's rows are dimensions (the last one the constant 1 of the bias) and its columns examples
    // times the root of their curvature: made slice by slice, for there may be many examples.
    const auto fill = [&](int panel, int from, int count, double* to) {
      const int dimensions = std::min(kWidth, x_.depth() - panel * kWidth);
      for (int i = from; i < from + count; ++i, to += kWidth) {
        const double s = roots_[static_cast<size_t>(i)];
        const double* x = x_.panel(i / kWidth) + i % kWidth;
        for (int k = 0; k < dimensions; ++k) to[k] = s * x[static_cast<size_t>(panel * kWidth + k) * kWidth];
        for (int k = dimensions; k < kWidth; ++k) to[k] = k == dimensions ? s : 0;
      }
    };
    gram_lower<double>(x_.depth() + 1, x_.rows(), fill, system_);
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
  const PanelMatrix<double>& x_;
  ThreadTeam* team_;
  double c_;
  size_t dimensions_;
  Vector roots_;  // of the curvatures
  PanelMatrix<double> system_;
  std::optional<Cholesky<double>> cholesky_;
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

/// Where rough scores do for a gradient of this size, examples are not read for them.
constexpr double kRoughGradient = 1e-3;

LogisticFit minimise(Problem& problem, const std::vector<uint8_t>& labels, const LogisticOptions& options,
                     double tolerance, const CancelToken& cancel,
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
  // False where rounding has the last word: no better point can be told from this one.
  const auto step_on = [&] {
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

  double goal = problem.approximate() ? std::max(tolerance, kRoughGradient) : tolerance;
  bool renewed = false;
  for (;;) {
    cancel.check();
    evaluate();
    const double bound = problem.gradient_bound(residual);
    if (bound > goal && fit.iterations < options.max_iterations && step_on()) {
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

/// In single precision, K is wrong by about 2^-24 of its trace. That much, times c and a curvature of at most
/// 1/4, is what its factor gets wrong of a Hessian whose eigenvalues are at least 1.
constexpr double kWrongest = 1.0;

bool single_will_do(const StandardisedExamples& x, double c) {
  const double trace = static_cast<double>(x.rows()) * x.depth();
  return c / 4 * trace * 0x1p-24 <= kWrongest;
}

}  // namespace

LogisticRegression::LogisticRegression(const StandardisedExamples& x, const LogisticOptions& options,
                                       ThreadTeam& team)
    : x_(x), options_(options), whole_(uses_gram() ? 0 : x.rows(), uses_gram() ? 0 : x.depth()) {
  if (!uses_gram()) {
    team.parallel_for(whole_.panels(), [&](int p) { x.fill(p, 0, x.depth(), whole_.panel(p)); });
  } else if (single_will_do(x, options.c)) {
    single_ = std::make_unique<SharedGram<float>>(x, options.c, team);
  } else {
    double_ = std::make_unique<SharedGram<double>>(x, options.c, team);
  }
}

LogisticRegression::~LogisticRegression() = default;

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
  const auto run = [&](Problem&& problem, const std::function<void(int)>& told) {
    return minimise(problem, labels, options_, tolerance.value_or(options_.tolerance), cancel, told);
  };
  if (!uses_gram()) return run(WeightProblem(whole_, options_.c, team), on_iteration);
  if (double_) return run(GramProblem<double>(x_, *double_, options_.c, team), on_iteration);
  LogisticFit fit = run(GramProblem<float>(x_, *single_, options_.c, team), on_iteration);
  if (fit.converged) return fit;
  // Single precision is a way to the minimum, not what is promised: the rare rest begins again in double.
  ThreadTeam alone(1);
  const SharedGram<double> shared(x_, options_.c, team != nullptr ? *team : alone);
  const int before = fit.iterations;
  fit = run(GramProblem<double>(x_, shared, options_.c, team), [&](int iteration) {
    if (on_iteration) on_iteration(before + iteration);
  });
  fit.iterations += before;
  return fit;
}

}  // namespace tapline::train
